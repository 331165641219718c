package io.spikelab.tomcat.authz;

import com.fasterxml.jackson.annotation.JsonProperty;
import io.spikelab.tomcat.InvalidValueException;
import io.spikelab.tomcat.Setting;
import io.spikelab.tomcat.authz.AuthzMetrics.Revocation;
import io.spikelab.tomcat.web.PlainText;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.springframework.http.CacheControl;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** The making and revoking of what {@link PingServlet} checks. */
@RestController
class AuthzController {

    static final int DEFAULT_SECONDS = 1800;
    private static final Setting TTL = Setting.wholeNumber(1, TokenIssuer.LONGEST_SECONDS);
    private static final int MAXIMUM_SUBJECT_CHARACTERS = 128;
    private static final byte[] FULL = "not revoked: the blacklist is full\n".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] UNAVAILABLE =
            "not revoked: the blacklist is unavailable\n".getBytes(StandardCharsets.US_ASCII);

    private final Authorizer authorizer;
    private final Tokens tokens;

    AuthzController(Authorizer authorizer, Tokens tokens) {
        this.authorizer = authorizer;
        this.tokens = tokens;
    }

    /** The names are those of RFC 6749. */
    record TokenAnswer(@JsonProperty("access_token") String accessToken, @JsonProperty("token_type") String type,
            @JsonProperty("expires_in") long seconds) {
    }

    @PostMapping("/api/v1/auth/token")
    ResponseEntity<?> token(@RequestParam(name = "subject", defaultValue = "load-test") String subject,
            @RequestParam(name = "ttl", required = false) String ttl) {
        if (!tokens.canMint()) {
            return PlainText.line(HttpStatus.NOT_FOUND,
                    "no tokens are made here: " + TokenKeys.PRIVATE + " is not set");
        }
        long seconds = ttl == null ? DEFAULT_SECONDS : Long.parseLong(TTL.parse("ttl", ttl));
        String token = tokens.issuer().mint(checked(subject), seconds);
        return ResponseEntity.ok().cacheControl(CacheControl.noStore()).contentType(MediaType.APPLICATION_JSON)
                .body(new TokenAnswer(token, "Bearer", seconds));
    }

    @PostMapping("/api/v1/auth/logout")
    void logout(HttpServletRequest request, HttpServletResponse response) throws IOException {
        Revocation result = authorizer.revoke(Answers.authorization(request));
        if (result == Revocation.ACCEPTED) {
            response.setStatus(HttpServletResponse.SC_NO_CONTENT);
        } else if (result == Revocation.BLACKLIST_FULL) {
            Answers.write(response, HttpServletResponse.SC_SERVICE_UNAVAILABLE, FULL);
        } else if (result == Revocation.BLACKLIST_UNAVAILABLE) {
            Answers.write(response, HttpServletResponse.SC_SERVICE_UNAVAILABLE, UNAVAILABLE);
        } else {
            Answers.refuse(response);
        }
    }

    private static String checked(String subject) {
        if (subject.isBlank() || subject.length() > MAXIMUM_SUBJECT_CHARACTERS) {
            throw new InvalidValueException("subject", subject.isBlank() ? "" : subject.substring(0, 60) + "...",
                    "must have 1 to " + MAXIMUM_SUBJECT_CHARACTERS + " characters");
        }
        return subject;
    }
}
