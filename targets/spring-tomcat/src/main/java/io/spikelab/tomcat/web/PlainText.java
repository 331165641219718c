package io.spikelab.tomcat.web;

import io.spikelab.tomcat.InvalidValueException;
import java.nio.charset.StandardCharsets;
import org.apache.tomcat.util.http.InvalidParameterException;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.RestControllerAdvice;

/** Answers of one line, a wrong parameter's among them. */
@RestControllerAdvice
public class PlainText {

    /** An answer that is one line of text. */
    public static ResponseEntity<byte[]> line(HttpStatus status, String text) {
        return ResponseEntity.status(status).contentType(MediaType.TEXT_PLAIN)
                .body((text + "\n").getBytes(StandardCharsets.UTF_8));
    }

    @ExceptionHandler
    ResponseEntity<byte[]> wrongParameter(InvalidValueException wrong) {
        return line(HttpStatus.BAD_REQUEST, wrong.getMessage());
    }

    @ExceptionHandler
    ResponseEntity<byte[]> wrongEncoding(InvalidParameterException wrong) {
        return line(HttpStatus.BAD_REQUEST, "a parameter cannot be decoded: write % as %25");
    }
}
