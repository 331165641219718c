package io.spikelab.tomcat;

import static io.spikelab.tomcat.authz.SigningKit.claims;
import static io.spikelab.tomcat.authz.SigningKit.secondsFromNow;
import static io.spikelab.tomcat.authz.SigningKit.sign;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import com.nimbusds.jose.JOSEException;
import com.nimbusds.jose.JWSAlgorithm;
import com.nimbusds.jose.JWSHeader;
import com.nimbusds.jose.PlainHeader;
import com.nimbusds.jose.crypto.ECDSASigner;
import com.nimbusds.jose.crypto.MACSigner;
import com.nimbusds.jose.crypto.RSASSASigner;
import com.nimbusds.jose.jwk.Curve;
import com.nimbusds.jose.jwk.gen.ECKeyGenerator;
import com.nimbusds.jose.util.Base64URL;
import com.nimbusds.jwt.PlainJWT;
import io.spikelab.tomcat.authz.Refusal;
import io.spikelab.tomcat.authz.SigningKit;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** What the running target refuses: each counted once, under its reason, and all answered alike. */
class AuthzRefusalTest {

    private static final String PING = "/api/v1/authz/ping";
    private static final SigningKit KIT = new SigningKit();
    private static final String VALID = KIT.validToken();
    private static final String CLAIMS = claims().build().toString();

    private static Path keyFile;
    private static RunningTarget target;

    @BeforeAll
    static void start() throws Exception {
        keyFile = KIT.writePublic(Files.createTempFile("public", ".pem"));
        target = RunningTarget.with("AUTHZ_PUBLIC_KEY_FILE", keyFile.toString());
    }

    @AfterAll
    static void stop() throws Exception {
        target.close();
        Files.delete(keyFile);
    }

    @Test
    void refusesARequestWithoutAToken() throws Exception {
        assertRefused(Refusal.MISSING_TOKEN);
        assertRefused(Refusal.MISSING_TOKEN, "Authorization", "Basic dXNlcjpwYXNzd29yZA==");
        assertRefused(Refusal.MISSING_TOKEN, "Authorization", "Bearer");
        assertRefused(Refusal.MISSING_TOKEN, "Authorization", "Bearer" + VALID);
        assertRefused(Refusal.MISSING_TOKEN, "Authorization", VALID);
        assertRefused(Refusal.MISSING_TOKEN, "Authorization", "Bearer " + VALID, "Authorization", "Bearer " + VALID);
    }

    @ParameterizedTest(name = "{0}: {1}")
    @MethodSource({"unreadable", "wrongHeaders", "wrongSignatures", "wrongClaims"})
    void refusesAToken(Refusal refusal, String what, String token) throws Exception {
        assertRefused(refusal, "Authorization", "Bearer " + token);
        assertEquals(401, target.send("POST", "/api/v1/auth/logout", "Authorization", "Bearer " + token).statusCode());
    }

    @Test
    void refusesBytesThatAreNoText() throws Exception {
        String name = counter(Refusal.GARBAGE);
        double before = target.metric(name);
        try (RawConnection connection = new RawConnection(target.port())) {
            connection.send("GET " + PING + " HTTP/1.1\r\nHost: target\r\n"
                    + "Authorization: Bearer \u00ff\u00fe\t.%00.\u0080\r\n\r\n");
            assertEquals(401, connection.status());
        }
        assertEquals(before + 1, target.metric(name));
    }

    @Test
    void acceptsWhatTheseTokensAreMadeFrom() throws Exception {
        assertEquals(200, target.send("GET", PING, "Authorization", "Bearer " + VALID).statusCode());
        assertEquals(200, target.send("GET", PING, "Authorization", "Bearer " + KIT.sign(CLAIMS)).statusCode());
    }

    static Stream<Arguments> unreadable() {
        String nested = Base64URL.encode("{\"a\":".repeat(1000)).toString();
        JWSHeader critical = new JWSHeader.Builder(KIT.header(JWSAlgorithm.RS256)).criticalParams(Set.of("exp"))
                .build();
        return Stream.of(
                arguments(Refusal.OVERSIZED, "one character too many", "a".repeat(8193)),
                arguments(Refusal.OVERSIZED, "signed", KIT.sign(claims().claim("pad", "a".repeat(7000)).build()
                        .toString())),
                arguments(Refusal.GARBAGE, "as long as a token may be", "a".repeat(8192)),
                arguments(Refusal.GARBAGE, "one letter", "x"),
                arguments(Refusal.GARBAGE, "dots only", ".."),
                arguments(Refusal.GARBAGE, "three letters", "a.b.c"),
                arguments(Refusal.GARBAGE, "five parts", VALID + ".a.b"),
                arguments(Refusal.GARBAGE, "two parts", VALID.substring(0, VALID.lastIndexOf('.'))),
                arguments(Refusal.GARBAGE, "padded signature", VALID + "=="),
                arguments(Refusal.GARBAGE, "a space in the signature", VALID + " x"),
                arguments(Refusal.GARBAGE, "a header of other JSON", Base64URL.encode("[1]") + ".e30.e30"),
                arguments(Refusal.GARBAGE, "a header without alg", Base64URL.encode("{\"kid\":\"a\"}") + ".e30.e30"),
                arguments(Refusal.GARBAGE, "deep JSON", nested + ".e30.e30"),
                arguments(Refusal.GARBAGE, "an extension it must know",
                        sign(critical, new RSASSASigner(KIT.pair.getPrivate()), CLAIMS)),
                arguments(Refusal.GARBAGE, "claims that are no JSON", KIT.sign("claims")),
                arguments(Refusal.GARBAGE, "an expiry that is no number",
                        KIT.sign("{\"sub\":\"a\",\"jti\":\"b\",\"exp\":\"tomorrow\"}")),
                arguments(Refusal.GARBAGE, "an id that is no text", KIT.sign("{\"sub\":\"a\",\"jti\":{},\"exp\":9e9}")),
                arguments(Refusal.GARBAGE, "an id too long", KIT.sign(claims().jwtID("i".repeat(256)).build()
                        .toString())));
    }

    static Stream<Arguments> wrongHeaders() throws JOSEException {
        RSASSASigner signer = new RSASSASigner(KIT.pair.getPrivate());
        String none = new PlainJWT(claims().build()).serialize();
        return Stream.of(
                arguments(Refusal.ALG_NONE, "as specified", none),
                arguments(Refusal.ALG_NONE, "with a key id",
                        new PlainJWT(new PlainHeader.Builder().customParam("kid", KIT.keyId).build(), claims().build())
                                .serialize()),
                arguments(Refusal.ALG_NONE, "with a signature", none + VALID.substring(VALID.lastIndexOf('.') + 1)),
                arguments(Refusal.ALG_NONE, "in other letters", Base64URL.encode("{\"alg\":\"nOnE\"}")
                        + none.substring(none.indexOf('.'))),
                arguments(Refusal.WRONG_ALGORITHM, "HS256, the public key as secret",
                        sign(KIT.header(JWSAlgorithm.HS256), new MACSigner(KIT.pair.getPublic().getEncoded()), CLAIMS)),
                arguments(Refusal.WRONG_ALGORITHM, "HS256, the public key's file as secret",
                        sign(KIT.header(JWSAlgorithm.HS256), new MACSigner(KIT.publicPem()), CLAIMS)),
                arguments(Refusal.WRONG_ALGORITHM, "ES256", sign(KIT.header(JWSAlgorithm.ES256),
                        new ECDSASigner(new ECKeyGenerator(Curve.P_256).generate()), CLAIMS)),
                arguments(Refusal.WRONG_ALGORITHM, "RS512", sign(KIT.header(JWSAlgorithm.RS512), signer, CLAIMS)),
                arguments(Refusal.WRONG_ALGORITHM, "PS256", sign(KIT.header(JWSAlgorithm.PS256), signer, CLAIMS)),
                arguments(Refusal.WRONG_KEY_ID, "none", sign(new JWSHeader(JWSAlgorithm.RS256), signer, CLAIMS)),
                arguments(Refusal.WRONG_KEY_ID, "another",
                        sign(new JWSHeader.Builder(JWSAlgorithm.RS256).keyID("other").build(), signer, CLAIMS)),
                arguments(Refusal.WRONG_KEY_ID, "another's token", new SigningKit().validToken()));
    }

    static Stream<Arguments> wrongSignatures() {
        String[] parts = VALID.split("\\.");
        String otherKey = sign(KIT.header(JWSAlgorithm.RS256), new RSASSASigner(new SigningKit().pair.getPrivate()),
                CLAIMS);
        return Stream.of(
                arguments(Refusal.BAD_SIGNATURE, "by another key", otherKey),
                arguments(Refusal.BAD_SIGNATURE, "of other claims",
                        parts[0] + "." + Base64URL.encode(CLAIMS) + "." + parts[2]),
                arguments(Refusal.BAD_SIGNATURE, "empty", parts[0] + "." + parts[1] + "."),
                arguments(Refusal.BAD_SIGNATURE, "zero", parts[0] + "." + parts[1] + "."
                        + Base64URL.encode(new byte[256])),
                arguments(Refusal.BAD_SIGNATURE, "short", parts[0] + "." + parts[1] + "."
                        + Base64URL.encode(new byte[17])));
    }

    static Stream<Arguments> wrongClaims() {
        return Stream.of(
                arguments(Refusal.MISSING_CLAIMS, "all", KIT.sign("{}")),
                arguments(Refusal.MISSING_CLAIMS, "exp", KIT.sign(claims().expirationTime(null).build().toString())),
                arguments(Refusal.MISSING_CLAIMS, "jti", KIT.sign(claims().jwtID(null).build().toString())),
                arguments(Refusal.MISSING_CLAIMS, "sub", KIT.sign(claims().subject(null).build().toString())),
                arguments(Refusal.MISSING_CLAIMS, "blank jti", KIT.sign(claims().jwtID(" ").build().toString())),
                arguments(Refusal.EXPIRED, "a second ago",
                        KIT.sign(claims().expirationTime(secondsFromNow(-1)).build().toString())),
                arguments(Refusal.EXPIRED, "before the epoch",
                        KIT.sign("{\"sub\":\"a\",\"jti\":\"b\",\"exp\":-1e300}")),
                arguments(Refusal.NOT_YET_VALID, "in a minute",
                        KIT.sign(claims().notBeforeTime(secondsFromNow(50)).build().toString())));
    }

    private static void assertRefused(Refusal refusal, String... headers) throws Exception {
        double counted = target.metric(counter(refusal));
        double all = target.metric("ext_authz_requests_total");
        HttpResponse<String> answer = target.send("GET", PING, headers);
        assertEquals(401, answer.statusCode());
        assertEquals("unauthorized\n", answer.body());
        assertEquals("Bearer", answer.headers().firstValue("WWW-Authenticate").orElse(""));
        assertEquals(counted + 1, target.metric(counter(refusal)), refusal.label());
        assertEquals(all + 1, target.metric("ext_authz_requests_total"));
    }

    private static String counter(Refusal refusal) {
        return "ext_authz_requests_total{decision=\"deny\",reason=\"" + refusal.label() + "\"}";
    }
}
