package io.spikelab.tomcat.authz;

import com.nimbusds.jose.JOSEException;
import com.nimbusds.jose.JWSAlgorithm;
import com.nimbusds.jose.JWSHeader;
import com.nimbusds.jose.JWSSigner;
import com.nimbusds.jose.crypto.RSASSASigner;
import com.nimbusds.jose.util.Base64URL;
import com.nimbusds.jwt.JWTClaimsSet;
import com.nimbusds.jwt.SignedJWT;
import java.security.PrivateKey;
import java.security.SecureRandom;
import java.util.Date;

/** Mints tokens signed with RS256; safe for use by many threads. */
final class TokenIssuer {

    /** The longest lifetime that the token endpoint gives. */
    static final long LONGEST_SECONDS = 86_400;

    private static final int ID_BYTES = 16;

    private final JWSSigner signer;
    private final JWSHeader header;
    private final TokenClock clock;
    private final SecureRandom random = new SecureRandom();

    TokenIssuer(PrivateKey key, String keyId, TokenClock clock) {
        this.signer = new RSASSASigner(key);
        this.header = new JWSHeader.Builder(JWSAlgorithm.RS256).keyID(keyId).build();
        this.clock = clock;
    }

    /** A token for a subject, valid from now for the seconds given, with an id of its own. */
    String mint(String subject, long seconds) {
        long now = clock.millis();
        SignedJWT token = new SignedJWT(header, new JWTClaimsSet.Builder().subject(subject).jwtID(newId())
                .issueTime(new Date(now)).expirationTime(new Date(now + seconds * 1000)).build());
        try {
            token.sign(signer);
        } catch (JOSEException failure) {
            throw new IllegalStateException("cannot sign with this key", failure);
        }
        return token.serialize();
    }

    private String newId() {
        byte[] id = new byte[ID_BYTES];
        random.nextBytes(id);
        return Base64URL.encode(id).toString();
    }
}
