package io.spikelab.tomcat.authz;

import com.nimbusds.jose.Header;
import com.nimbusds.jose.JOSEException;
import com.nimbusds.jose.JWSAlgorithm;
import com.nimbusds.jose.JWSHeader;
import com.nimbusds.jose.JWSVerifier;
import com.nimbusds.jose.crypto.RSASSAVerifier;
import com.nimbusds.jose.util.Base64URL;
import com.nimbusds.jwt.JWTClaimsSet;
import java.nio.charset.StandardCharsets;
import java.security.interfaces.RSAPublicKey;
import java.text.ParseException;
import java.util.Base64;
import java.util.Date;

/** Verifies tokens signed with RS256 by one key; safe for use by many threads. */
final class TokenVerifier {

    static final int MAXIMUM_CHARACTERS = 8192;

    private static final Base64.Decoder DECODER = Base64.getUrlDecoder();
    private static final Base64.Encoder ENCODER = Base64.getUrlEncoder().withoutPadding();
    /** An id is kept in memory while its token is revoked. */
    static final int MAXIMUM_ID_CHARACTERS = 255;

    private final JWSVerifier signatures;
    private final String keyId;
    private final TokenClock clock;

    TokenVerifier(RSAPublicKey key, String keyId, TokenClock clock) {
        this.signatures = new RSASSAVerifier(key);
        this.keyId = keyId;
        this.clock = clock;
    }

    /**
     * Checks a token, its signature before any of its claims.
     *
     * @param token header, claims and signature, each base64url, with a dot between
     * @throws RefusedException with the first reason found, whatever the text holds
     */
    VerifiedToken verify(String token) throws RefusedException {
        if (token.length() > MAXIMUM_CHARACTERS) {
            throw new RefusedException(Refusal.OVERSIZED);
        }
        try {
            return verifyParts(token, token.indexOf('.'), token.lastIndexOf('.'));
        } catch (ParseException | RuntimeException | StackOverflowError unreadable) {
            throw new RefusedException(Refusal.GARBAGE);
        }
    }

    private VerifiedToken verifyParts(String token, int firstDot, int lastDot)
            throws ParseException, RefusedException {
        require(firstDot > 0 && token.indexOf('.', firstDot + 1) == lastDot, Refusal.GARBAGE);
        JWSHeader header = acceptedHeader(Header.parse(new Base64URL(token.substring(0, firstDot))));
        requireSignature(header, token.substring(0, lastDot), token.substring(lastDot + 1));
        Base64URL claims = new Base64URL(token.substring(firstDot + 1, lastDot));
        return acceptedClaims(JWTClaimsSet.parse(claims.decodeToString()));
    }

    private JWSHeader acceptedHeader(Header header) throws RefusedException {
        require(!header.getAlgorithm().getName().equalsIgnoreCase("none"), Refusal.ALG_NONE);
        require(header.getAlgorithm().equals(JWSAlgorithm.RS256), Refusal.WRONG_ALGORITHM);
        JWSHeader signed = (JWSHeader) header;
        require(keyId.equals(signed.getKeyID()), Refusal.WRONG_KEY_ID);
        // Its sender insists on an extension, and none is known here.
        require(signed.getCriticalParams() == null, Refusal.GARBAGE);
        return signed;
    }

    private void requireSignature(JWSHeader header, String signed, String signature) throws RefusedException {
        // The verifier skips what is not base64url and ignores spare bits; a token is to have one spelling.
        require(ENCODER.encodeToString(DECODER.decode(signature)).equals(signature), Refusal.GARBAGE);
        try {
            byte[] input = signed.getBytes(StandardCharsets.UTF_8);
            require(signatures.verify(header, input, new Base64URL(signature)), Refusal.BAD_SIGNATURE);
        } catch (JOSEException unverifiable) {
            throw new RefusedException(Refusal.BAD_SIGNATURE);
        }
    }

    private VerifiedToken acceptedClaims(JWTClaimsSet claims) throws RefusedException {
        Date expires = claims.getExpirationTime();
        Date notBefore = claims.getNotBeforeTime();
        String id = claims.getJWTID();
        require(expires != null && isGiven(id) && isGiven(claims.getSubject()), Refusal.MISSING_CLAIMS);
        require(id.length() <= MAXIMUM_ID_CHARACTERS, Refusal.GARBAGE);
        long now = clock.millis();
        require(now < expires.getTime(), Refusal.EXPIRED);
        require(notBefore == null || now >= notBefore.getTime(), Refusal.NOT_YET_VALID);
        return new VerifiedToken(id, expires.getTime());
    }

    private static boolean isGiven(String claim) {
        return claim != null && !claim.isBlank();
    }

    private static void require(boolean condition, Refusal otherwise) throws RefusedException {
        if (!condition) {
            throw new RefusedException(otherwise);
        }
    }
}
