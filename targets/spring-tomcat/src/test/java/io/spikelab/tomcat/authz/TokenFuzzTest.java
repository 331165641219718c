package io.spikelab.tomcat.authz;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import com.nimbusds.jose.util.Base64URL;
import io.spikelab.tomcat.Fuzzing;
import io.spikelab.tomcat.Mutations;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.Signature;
import java.security.interfaces.RSAPublicKey;
import java.util.EnumSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tokens that are damaged, before their signature and under it: a reason or an acceptance, never an exception. */
class TokenFuzzTest {

    private static final long SECOND = 1_800_000_000L;
    private static final byte[] UNSIGNED = "{\"alg\":\"none\"}".getBytes(StandardCharsets.US_ASCII);

    // Signing is what costs, and a short key is as good here; Nimbus verifies with any.
    private final SigningKit kit = new SigningKit("RSA", 1024);
    private final TokenVerifier verifier = new TokenVerifier((RSAPublicKey) kit.pair.getPublic(), kit.keyId,
            new TokenClock(() -> SECOND * 1000));
    private final byte[] header = ("{\"alg\":\"RS256\",\"kid\":\"" + kit.keyId + "\"}").getBytes(StandardCharsets.UTF_8);
    private final byte[] claims = ("{\"sub\":\"load-test\",\"jti\":\"b\",\"nbf\":" + (SECOND - 5) + ",\"iat\":1,\"exp\":"
            + (SECOND + 60) + "}").getBytes(StandardCharsets.UTF_8);
    private final byte[] valid = signed(header, claims);
    private final Set<Refusal> seen = EnumSet.noneOf(Refusal.class);

    @Test
    @Timeout(600)
    void refusesOrAcceptsEveryDamagedToken() throws Exception {
        assertEquals("b", verifier.verify(text(valid)).id());
        for (byte[] input : Fuzzing.findings("token")) {
            check(input, "of the findings");
        }
        for (int number = 0; number < Fuzzing.CASES; number++) {
            Random random = Fuzzing.random(number);
            check(damaged(random), "case " + number + " of the seed " + Fuzzing.SEED);
        }
        assertEquals("b", verifier.verify(text(valid)).id());
        assertTrue(seen.containsAll(EnumSet.of(Refusal.GARBAGE, Refusal.ALG_NONE, Refusal.WRONG_ALGORITHM,
                Refusal.WRONG_KEY_ID, Refusal.BAD_SIGNATURE, Refusal.MISSING_CLAIMS, Refusal.EXPIRED)), seen.toString());
        Fuzzing.report("token");
    }

    /** All of it is made from a valid token: the text, or its header or claims with a signature that is right. */
    private byte[] damaged(Random random) {
        List<byte[]> others = List.of(valid, header, claims);
        return switch (random.nextInt(8)) {
            case 0 -> signed(header, Mutations.mutate(claims, others, random));
            case 1 -> signed(Mutations.mutate(header, others, random), claims);
            case 2 -> joined(Mutations.mutate(random.nextBoolean() ? header : UNSIGNED, others, random), claims, "");
            default -> Mutations.mutate(valid, others, random);
        };
    }

    private void check(byte[] token, String told) {
        try {
            VerifiedToken accepted = verifier.verify(text(token));
            assertTrue(!accepted.id().isBlank() && accepted.expiresMillis() > SECOND * 1000, told);
            assertTrue(isSigned(text(token)), told);
        } catch (RefusedException refused) {
            seen.add(refused.refusal());
        } catch (RuntimeException | Error finding) {
            fail(told + ": " + Base64URL.encode(token), finding);
        }
    }

    /** By the JDK alone. */
    private boolean isSigned(String token) {
        try {
            Signature signature = Signature.getInstance("SHA256withRSA");
            signature.initVerify(kit.pair.getPublic());
            signature.update(token.substring(0, token.lastIndexOf('.')).getBytes(StandardCharsets.UTF_8));
            return signature.verify(Base64URL.from(token.substring(token.lastIndexOf('.') + 1)).decode());
        } catch (GeneralSecurityException wrong) {
            return false;
        }
    }

    private byte[] signed(byte[] signedHeader, byte[] signedClaims) {
        try {
            Signature signature = Signature.getInstance("SHA256withRSA");
            signature.initSign(kit.pair.getPrivate());
            signature.update(joined(signedHeader, signedClaims, null));
            return joined(signedHeader, signedClaims, Base64URL.encode(signature.sign()).toString());
        } catch (GeneralSecurityException failure) {
            throw new IllegalStateException(failure);
        }
    }

    /** With null for a signature, what is to be signed. */
    private static byte[] joined(byte[] first, byte[] second, String signature) {
        String unsigned = Base64URL.encode(first) + "." + Base64URL.encode(second);
        return (signature == null ? unsigned : unsigned + "." + signature).getBytes(StandardCharsets.US_ASCII);
    }

    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.ISO_8859_1);
    }
}
