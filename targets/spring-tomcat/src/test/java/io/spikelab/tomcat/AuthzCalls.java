package io.spikelab.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.net.http.HttpResponse;

/** The requests of authorization. */
final class AuthzCalls {

    static final String PING = "/api/v1/authz/ping";
    static final String TOKEN = "/api/v1/auth/token";
    private static final String LOGOUT = "/api/v1/auth/logout";

    private AuthzCalls() {
    }

    static HttpResponse<String> ping(TargetClient target, String token) throws IOException, InterruptedException {
        return target.send("GET", PING, "Authorization", "Bearer " + token);
    }

    static int logout(TargetClient target, String token) throws IOException, InterruptedException {
        return target.send("POST", LOGOUT, "Authorization", "Bearer " + token).statusCode();
    }

    static String mint(TargetClient target, String query) throws IOException, InterruptedException {
        return tokenIn(target.send("POST", TOKEN + query));
    }

    static String tokenIn(HttpResponse<String> answer) {
        assertEquals(200, answer.statusCode());
        return answer.body().split("\"")[3];
    }

    /** The metric that counts a decision. */
    static String counter(String decision, String reason) {
        return "ext_authz_requests_total{decision=\"" + decision + "\",reason=\"" + reason + "\"}";
    }
}
