package io.spikelab.tomcat.authz;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Enumeration;
import org.springframework.http.HttpHeaders;
import org.springframework.http.MediaType;

/** What a request for authorization presents, and the short answers to one. */
final class Answers {

    private static final byte[] REFUSED = "unauthorized\n".getBytes(StandardCharsets.US_ASCII);

    private Answers() {
    }

    /** The header, or null. Of two neither is taken: a proxy in front may have checked the other one. */
    static String authorization(HttpServletRequest request) {
        Enumeration<String> values = request.getHeaders(HttpHeaders.AUTHORIZATION);
        String value = values.hasMoreElements() ? values.nextElement() : null;
        return values.hasMoreElements() ? null : value;
    }

    static void refuse(HttpServletResponse response) throws IOException {
        response.setHeader(HttpHeaders.WWW_AUTHENTICATE, "Bearer");
        write(response, HttpServletResponse.SC_UNAUTHORIZED, REFUSED);
    }

    static void write(HttpServletResponse response, int status, byte[] body) throws IOException {
        response.setStatus(status);
        response.setContentType(MediaType.TEXT_PLAIN_VALUE);
        response.setContentLength(body.length);
        response.getOutputStream().write(body);
    }
}
