package io.spikelab.tomcat.authz;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/** The check of a token, and nothing around it: a servlet, because Spring's way to a handler is a good part of one. */
final class PingServlet extends HttpServlet {

    static final String PATH = "/api/v1/authz/ping";

    private static final long serialVersionUID = 1L;
    private static final byte[] ALLOWED = "ok\n".getBytes(StandardCharsets.US_ASCII);

    private final transient Authorizer authorizer;

    PingServlet(Authorizer authorizer) {
        this.authorizer = authorizer;
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        if (authorizer.check(Answers.authorization(request)) == null) {
            Answers.write(response, HttpServletResponse.SC_OK, ALLOWED);
        } else {
            Answers.refuse(response);
        }
    }
}
