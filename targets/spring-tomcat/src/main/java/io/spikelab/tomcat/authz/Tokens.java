package io.spikelab.tomcat.authz;

import com.nimbusds.jose.JOSEException;
import com.nimbusds.jose.jwk.RSAKey;
import java.security.KeyPair;
import java.security.interfaces.RSAPublicKey;
import org.springframework.util.function.SingletonSupplier;

/** Mints and verifies with the target's keys, which are made ready at the first use: a start is not to wait. */
final class Tokens {

    private final TokenKeys keys;
    private final SingletonSupplier<String> keyId;
    private final SingletonSupplier<TokenVerifier> verifier;
    private final SingletonSupplier<TokenIssuer> issuer;

    Tokens(TokenKeys keys, TokenClock clock) {
        this.keys = keys;
        this.keyId = SingletonSupplier.of(() -> thumbprint(publicKey()));
        this.verifier = SingletonSupplier.of(() -> new TokenVerifier(publicKey(), keyId.obtain(), clock));
        this.issuer = SingletonSupplier.of(() -> new TokenIssuer(keys.pair().getPrivate(), keyId.obtain(), clock));
    }

    boolean canMint() {
        return keys.canSign();
    }

    boolean areOfThisRunOnly() {
        return keys.madeForThisRun();
    }

    TokenVerifier verifier() {
        return verifier.obtain();
    }

    /** To be asked for only where {@link #canMint()}. */
    TokenIssuer issuer() {
        return issuer.obtain();
    }

    private RSAPublicKey publicKey() {
        KeyPair pair = keys.pair();
        return (RSAPublicKey) pair.getPublic();
    }

    /** RFC 7638: any holder of the key gets the same id. */
    static String thumbprint(RSAPublicKey key) {
        try {
            return new RSAKey.Builder(key).build().computeThumbprint().toString();
        } catch (JOSEException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
