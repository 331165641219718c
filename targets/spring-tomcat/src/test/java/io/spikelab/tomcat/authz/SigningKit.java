package io.spikelab.tomcat.authz;

import com.nimbusds.jose.JOSEException;
import com.nimbusds.jose.JWSAlgorithm;
import com.nimbusds.jose.JWSHeader;
import com.nimbusds.jose.JWSObject;
import com.nimbusds.jose.JWSSigner;
import com.nimbusds.jose.Payload;
import com.nimbusds.jose.crypto.RSASSASigner;
import com.nimbusds.jwt.JWTClaimsSet;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.NoSuchAlgorithmException;
import java.security.interfaces.RSAPublicKey;
import java.util.Base64;
import java.util.Date;
import java.util.UUID;

/** A key pair outside the target, to sign what the target is to accept and what it is to refuse. */
public final class SigningKit {

    public final KeyPair pair;
    public final String keyId;

    public SigningKit() {
        this("RSA", 2048);
    }

    SigningKit(String algorithm, int bits) {
        try {
            KeyPairGenerator generator = KeyPairGenerator.getInstance(algorithm);
            generator.initialize(bits);
            pair = generator.generateKeyPair();
            keyId = pair.getPublic() instanceof RSAPublicKey key ? Tokens.thumbprint(key) : "none";
        } catch (NoSuchAlgorithmException failure) {
            throw new IllegalStateException(failure);
        }
    }

    /** Claims that are accepted, for a minute. */
    public static JWTClaimsSet.Builder claims() {
        return new JWTClaimsSet.Builder().subject("test").jwtID(UUID.randomUUID().toString())
                .expirationTime(secondsFromNow(60));
    }

    public static Date secondsFromNow(int seconds) {
        return new Date(System.currentTimeMillis() + seconds * 1000L);
    }

    public String validToken() {
        return sign(claims().build().toString());
    }

    /** Signs with RS256 whatever the claims are. */
    public String sign(String claims) {
        return sign(header(JWSAlgorithm.RS256), new RSASSASigner(pair.getPrivate()), claims);
    }

    public static String sign(JWSHeader header, JWSSigner signer, String claims) {
        JWSObject token = new JWSObject(header, new Payload(claims));
        try {
            token.sign(signer);
        } catch (JOSEException failure) {
            throw new IllegalStateException(failure);
        }
        return token.serialize();
    }

    public JWSHeader header(JWSAlgorithm algorithm) {
        return new JWSHeader.Builder(algorithm).keyID(keyId).build();
    }

    public Path writePrivate(Path file) throws IOException {
        return Files.writeString(file, pem("PRIVATE KEY", pair.getPrivate().getEncoded()));
    }

    public Path writePublic(Path file) throws IOException {
        return Files.writeString(file, publicPem());
    }

    public String publicPem() {
        return pem("PUBLIC KEY", pair.getPublic().getEncoded());
    }

    private static String pem(String label, byte[] der) {
        String text = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(der);
        return "-----BEGIN " + label + "-----\n" + text + "\n-----END " + label + "-----\n";
    }
}
