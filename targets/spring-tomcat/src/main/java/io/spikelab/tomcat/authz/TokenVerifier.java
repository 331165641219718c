package io.spikelab.tomcat.authz;

import com.nimbusds.jose.Header;
import com.nimbusds.jose.JWSAlgorithm;
import com.nimbusds.jose.JWSHeader;
import com.nimbusds.jose.util.Base64URL;
import com.nimbusds.jwt.JWTClaimsSet;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.Signature;
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

    /** Finding an implementation and giving it the key costs more than all but the verification itself. */
    private final ThreadLocal<Signature> signatures;
    private final String keyId;
    private final TokenClock clock;
    /** Encoded, the last one accepted: tokens of one issuer have one header, so it need not be read again. */
    private volatile String knownHeader = "";

    TokenVerifier(RSAPublicKey key, String keyId, TokenClock clock) {
        this.signatures = ThreadLocal.withInitial(() -> signatureOf(key));
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
        requireAcceptedHeader(token.substring(0, firstDot));
        requireSignature(token.substring(0, lastDot), token.substring(lastDot + 1));
        byte[] claims = DECODER.decode(token.substring(firstDot + 1, lastDot));
        return acceptedClaims(JWTClaimsSet.parse(new String(claims, StandardCharsets.UTF_8)));
    }

    private void requireAcceptedHeader(String encoded) throws ParseException, RefusedException {
        if (encoded.equals(knownHeader)) {
            return;
        }
        Header header = Header.parse(new Base64URL(encoded));
        require(!header.getAlgorithm().getName().equalsIgnoreCase("none"), Refusal.ALG_NONE);
        require(header.getAlgorithm().equals(JWSAlgorithm.RS256), Refusal.WRONG_ALGORITHM);
        JWSHeader signed = (JWSHeader) header;
        require(keyId.equals(signed.getKeyID()), Refusal.WRONG_KEY_ID);
        // Its sender insists on an extension, and none is known here.
        require(signed.getCriticalParams() == null, Refusal.GARBAGE);
        knownHeader = encoded;
    }

    private void requireSignature(String signed, String encoded) throws RefusedException {
        byte[] bytes = DECODER.decode(encoded);
        // The decoder ignores spare bits and padding; a token is to have one spelling.
        require(ENCODER.encodeToString(bytes).equals(encoded), Refusal.GARBAGE);
        try {
            Signature signature = signatures.get();
            signature.update(signed.getBytes(StandardCharsets.UTF_8));
            require(signature.verify(bytes), Refusal.BAD_SIGNATURE);
        } catch (GeneralSecurityException unverifiable) {
            // Of another length than the key's. What it has hashed so far must not meet the next token.
            signatures.remove();
            throw new RefusedException(Refusal.BAD_SIGNATURE);
        }
    }

    private static Signature signatureOf(RSAPublicKey key) {
        try {
            Signature signature = Signature.getInstance("SHA256withRSA");
            signature.initVerify(key);
            return signature;
        } catch (GeneralSecurityException impossible) {
            throw new IllegalStateException("cannot verify with this key", impossible);
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
