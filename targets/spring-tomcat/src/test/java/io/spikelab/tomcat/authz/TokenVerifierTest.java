package io.spikelab.tomcat.authz;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.charset.StandardCharsets;
import java.security.interfaces.RSAPublicKey;
import java.util.Base64;
import java.util.EnumMap;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class TokenVerifierTest {

    private static final int MUTATIONS = 20_000;
    private static final long SECOND = 1_800_000_000L;

    private final SigningKit kit = new SigningKit();
    private final AtomicLong millis = new AtomicLong(SECOND * 1000);
    private final TokenVerifier verifier = new TokenVerifier((RSAPublicKey) kit.pair.getPublic(), kit.keyId,
            new TokenClock(millis::get));

    @Test
    void acceptsATokenUpToItsLastMillisecond() throws Exception {
        String token = kit.sign("{\"sub\":\"a\",\"jti\":\"b\",\"nbf\":" + SECOND + ",\"exp\":" + (SECOND + 1) + "}");
        assertEquals(new VerifiedToken("b", (SECOND + 1) * 1000), verifier.verify(token));
        millis.set((SECOND + 1) * 1000 - 1);
        verifier.verify(token);
        millis.set((SECOND + 1) * 1000);
        assertEquals(Refusal.EXPIRED, refusalOf(token));
    }

    @Test
    void refusesATokenUntilItsFirstMillisecond() throws Exception {
        String token = kit.sign("{\"sub\":\"a\",\"jti\":\"b\",\"nbf\":" + (SECOND + 1) + ",\"exp\":" + (SECOND + 9)
                + "}");
        millis.set((SECOND + 1) * 1000 - 1);
        assertEquals(Refusal.NOT_YET_VALID, refusalOf(token));
        millis.set((SECOND + 1) * 1000);
        verifier.verify(token);
    }

    @Test
    void doesNotAcceptAnExpiredTokenAgainWhenTheClockIsSetBack() {
        String token = kit.sign("{\"sub\":\"a\",\"jti\":\"b\",\"exp\":" + (SECOND + 1) + "}");
        millis.set((SECOND + 2) * 1000);
        assertEquals(Refusal.EXPIRED, refusalOf(token));
        millis.set(SECOND * 1000);
        assertEquals(Refusal.EXPIRED, refusalOf(token));
    }

    /** It ends the verification half-way, on the thread that verifies the next token. */
    @Test
    void isNotMisledByASignatureOfAnotherLength() throws Exception {
        String token = kit.sign("{\"sub\":\"a\",\"jti\":\"b\",\"exp\":" + (SECOND + 1) + "}");
        for (String signature : new String[] {"", "AAAA", token.substring(token.lastIndexOf('.') + 1) + "AAAA"}) {
            assertEquals(Refusal.BAD_SIGNATURE,
                    refusalOf(token.substring(0, token.lastIndexOf('.') + 1) + signature));
            verifier.verify(token);
        }
    }

    /** Any change makes it another text, and each other text has to be refused as such, with no other exception. */
    @Test
    void refusesEveryMutatedToken() {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        String token = kit.sign("{\"sub\":\"a\",\"jti\":\"b\",\"exp\":" + (SECOND + 60) + "}");
        Map<Refusal, Integer> counts = new EnumMap<>(Refusal.class);
        for (int i = 0; i < MUTATIONS; i++) {
            String mutated = mutate(token, random);
            if (!mutated.equals(token)) {
                Refusal refusal = assertThrows(RefusedException.class, () -> verifier.verify(mutated),
                        "seed " + seed + ": " + mutated).refusal();
                counts.merge(refusal, 1, Integer::sum);
            }
        }
        assertEquals(Set.of(Refusal.GARBAGE, Refusal.WRONG_ALGORITHM, Refusal.WRONG_KEY_ID,
                Refusal.BAD_SIGNATURE, Refusal.ALG_NONE, Refusal.OVERSIZED), counts.keySet(), "seed " + seed);
    }

    private static String mutate(String token, Random random) {
        int at = random.nextInt(token.length());
        return switch (random.nextInt(9)) {
            case 0 -> replaceAt(token, at, (char) random.nextInt(256));
            case 1 -> replaceAt(token, at, "AZaz09-_.=+/ ".charAt(random.nextInt(13)));
            case 2 -> token.substring(0, at);
            case 3 -> token.substring(0, at) + token.substring(at + 1);
            case 4 -> token.substring(0, at) + (char) random.nextInt(65536) + token.substring(at);
            case 5 -> token.substring(at) + "." + token.substring(0, at);
            case 6 -> withHeader(token, mutateJson(random));
            case 7 -> randomText(random);
            default -> token + "A".repeat(random.nextInt(9000) + 1);
        };
    }

    private static String replaceAt(String text, int at, char replacement) {
        return text.substring(0, at) + replacement + text.substring(at + 1);
    }

    private static String withHeader(String token, String header) {
        String encoded = Base64.getUrlEncoder().withoutPadding()
                .encodeToString(header.getBytes(StandardCharsets.UTF_8));
        return encoded + token.substring(token.indexOf('.'));
    }

    private static String mutateJson(Random random) {
        String[] headers = {"{\"alg\":\"none\"}", "{\"alg\":\"NONE\"}", "{\"alg\":null}", "{\"alg\":5}", "{}", "[]",
            "null", "{\"alg\":\"RS256\"}", "{\"alg\":\"RS256\",\"kid\":7}", "{\"alg\":\"RS256\",\"kid\":\"x\"}",
            "{\"alg\":\"\"}", "{\"alg\":\"RSA-OAEP\",\"enc\":\"A128GCM\"}", "{\"alg\":\"HS256\",\"kid\":\"x\"}",
            "{\"alg\":\"RS256\",\"jwk\":{\"kty\":\"RSA\"}}", "{\"alg\":\"RS256\",\"x5c\":[1]}",
            "{\"alg\":\"RS256\",\"alg\":\"none\"}", "{\"a\":".repeat(900), "[".repeat(5000)};
        String header = headers[random.nextInt(headers.length)];
        return random.nextBoolean() ? header : replaceAt(header, random.nextInt(header.length()),
                (char) random.nextInt(128));
    }

    private static String randomText(Random random) {
        StringBuilder text = new StringBuilder();
        for (int i = random.nextInt(200); i > 0; i--) {
            text.append(random.nextInt(9) == 0 ? '.' : (char) random.nextInt(300));
        }
        return text.toString();
    }

    private Refusal refusalOf(String token) {
        return assertThrows(RefusedException.class, () -> verifier.verify(token)).refusal();
    }
}
