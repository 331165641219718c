package io.spikelab.tomcat.web;

import io.spikelab.tomcat.Setting;
import io.spikelab.tomcat.TargetDescription;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.OutputStream;
import java.util.Arrays;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.http.HttpStatus;
import org.springframework.http.InvalidMediaTypeException;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** The endpoints that load is put on. */
@RestController
class TrafficController {

    static final int MAXIMUM_ECHO_BYTES = 10 << 20;

    private static final Setting BYTES = Setting.wholeNumber(0, 1L << 30);
    private static final byte[] CHUNK = chunk(8192);

    private final Setting delay;
    private final long defaultDelayMillis;

    TrafficController(TargetDescription description, @Value("${target.hello-delay-ms}") long defaultDelayMillis) {
        this.delay = description.setting("TARGET_HELLO_DELAY_MS");
        this.defaultDelayMillis = defaultDelayMillis;
    }

    /** Blocks the worker for the delay: what is under test is a server whose workers wait. */
    @GetMapping(path = "/hello", produces = MediaType.TEXT_PLAIN_VALUE)
    String hello(@RequestParam(name = "ms", required = false) String ms) throws InterruptedException {
        long millis = ms == null ? defaultDelayMillis : Long.parseLong(delay.parse("ms", ms));
        // Else it would yield its core to another thread.
        if (millis > 0) {
            Thread.sleep(millis);
        }
        return "Hello, world\n";
    }

    /** Answers with {@code n} bytes, written in pieces so that their number costs no memory. */
    @GetMapping("/bytes/{n}")
    void bytes(@PathVariable("n") String n, HttpServletResponse response) throws IOException {
        long remaining = Long.parseLong(BYTES.parse("n", n));
        response.setContentType(MediaType.APPLICATION_OCTET_STREAM_VALUE);
        response.setContentLengthLong(remaining);
        OutputStream body = response.getOutputStream();
        while (remaining > 0) {
            int length = (int) Math.min(CHUNK.length, remaining);
            body.write(CHUNK, 0, length);
            remaining -= length;
        }
    }

    /** Reads the whole body before it answers, as many clients write all of theirs before they read. */
    @PostMapping("/echo")
    ResponseEntity<byte[]> echo(HttpServletRequest request) throws IOException {
        byte[] body = request.getInputStream().readNBytes(MAXIMUM_ECHO_BYTES + 1);
        if (body.length > MAXIMUM_ECHO_BYTES) {
            return PlainText.line(HttpStatus.CONTENT_TOO_LARGE,
                    "body: must be at most " + MAXIMUM_ECHO_BYTES + " bytes");
        }
        return ResponseEntity.ok().contentType(typeOf(request)).body(body);
    }

    private static MediaType typeOf(HttpServletRequest request) {
        try {
            MediaType type = MediaType.parseMediaType(request.getContentType());
            return type.isConcrete() ? type : MediaType.APPLICATION_OCTET_STREAM;
        } catch (InvalidMediaTypeException none) {
            return MediaType.APPLICATION_OCTET_STREAM;
        }
    }

    /** A worker is interrupted only when the server stops. */
    @ExceptionHandler
    ResponseEntity<byte[]> stopping(InterruptedException stopping) {
        return PlainText.line(HttpStatus.SERVICE_UNAVAILABLE, "the target is stopping");
    }

    private static byte[] chunk(int length) {
        byte[] chunk = new byte[length];
        Arrays.fill(chunk, (byte) 'x');
        return chunk;
    }
}
