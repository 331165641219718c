package io.spikelab.tomcat.authz;

import io.spikelab.tomcat.InvalidValueException;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.NoSuchAlgorithmException;
import java.security.interfaces.RSAPrivateCrtKey;
import java.security.interfaces.RSAPublicKey;
import java.security.spec.RSAPublicKeySpec;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import org.springframework.util.function.SingletonSupplier;

/** The key pair of this target's tokens; without its private half it can verify but not mint. */
public final class TokenKeys {

    static final String PRIVATE = "AUTHZ_PRIVATE_KEY_FILE";
    static final String PUBLIC = "AUTHZ_PUBLIC_KEY_FILE";

    private static final int BITS = 2048;

    private final Supplier<KeyPair> pair;
    private final boolean canSign;
    private final boolean madeForThisRun;

    private TokenKeys(Supplier<KeyPair> pair, boolean canSign, boolean madeForThisRun) {
        this.pair = pair;
        this.canSign = canSign;
        this.madeForThisRun = madeForThisRun;
    }

    /**
     * Reads the files that the environment names; where it names none, a pair is made when first asked for.
     *
     * @throws InvalidValueException where a file does not hold its key
     */
    public static TokenKeys from(Map<String, String> environment) {
        Optional<RSAPrivateCrtKey> privateKey = file(PRIVATE, environment)
                .map(file -> PemKeys.privateKey(PRIVATE, file));
        Optional<RSAPublicKey> publicKey = file(PUBLIC, environment).map(file -> PemKeys.publicKey(PUBLIC, file));
        if (privateKey.isEmpty() && publicKey.isEmpty()) {
            return new TokenKeys(SingletonSupplier.of(TokenKeys::make), true, true);
        }
        if (privateKey.isPresent() && publicKey.isPresent()) {
            requireSamePair(privateKey.get(), publicKey.get(), environment);
        }
        RSAPublicKey known = publicKey.orElseGet(() -> publicHalf(privateKey.get()));
        KeyPair pair = new KeyPair(known, privateKey.orElse(null));
        return new TokenKeys(() -> pair, privateKey.isPresent(), false);
    }

    boolean canSign() {
        return canSign;
    }

    boolean madeForThisRun() {
        return madeForThisRun;
    }

    /** Its private half is null where only the public one was given. */
    KeyPair pair() {
        return pair.get();
    }

    private static Optional<String> file(String variable, Map<String, String> environment) {
        return Optional.ofNullable(environment.get(variable)).filter(value -> !value.isBlank());
    }

    private static KeyPair make() {
        try {
            KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
            generator.initialize(BITS);
            return generator.generateKeyPair();
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static RSAPublicKey publicHalf(RSAPrivateCrtKey key) {
        try {
            return (RSAPublicKey) KeyFactory.getInstance("RSA")
                    .generatePublic(new RSAPublicKeySpec(key.getModulus(), key.getPublicExponent()));
        } catch (GeneralSecurityException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static void requireSamePair(RSAPrivateCrtKey privateKey, RSAPublicKey publicKey,
            Map<String, String> environment) {
        if (!publicKey.equals(publicHalf(privateKey))) {
            throw new InvalidValueException(PUBLIC, environment.get(PUBLIC),
                    "does not belong to " + PRIVATE + "; leave it out, or make it from that file");
        }
    }
}
