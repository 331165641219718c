package io.spikelab.tomcat.authz;

import io.spikelab.tomcat.InvalidValueException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.interfaces.RSAKey;
import java.security.interfaces.RSAPrivateCrtKey;
import java.security.interfaces.RSAPublicKey;
import java.security.spec.PKCS8EncodedKeySpec;
import java.security.spec.X509EncodedKeySpec;
import java.util.Base64;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** RSA keys in PEM files: PKCS#8 for the private half, SubjectPublicKeyInfo for the public one. */
final class PemKeys {

    /** RFC 7518 asks for no less with RS256. */
    private static final int MINIMUM_BITS = 2048;
    private static final String MAKE_PRIVATE =
            "openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out FILE";
    private static final String MAKE_PUBLIC = "openssl pkey -in PRIVATE_FILE -pubout -out FILE";

    /** How a key is made of the bytes in its file. */
    private interface Decoder<K> {
        K decode(KeyFactory factory, byte[] der) throws GeneralSecurityException;
    }

    private PemKeys() {
    }

    /** @throws InvalidValueException naming the variable, where the file holds no such key */
    static RSAPrivateCrtKey privateKey(String variable, String file) {
        return key(variable, file, "PRIVATE KEY", MAKE_PRIVATE, (factory, der) ->
                (RSAPrivateCrtKey) factory.generatePrivate(new PKCS8EncodedKeySpec(der)));
    }

    /** @throws InvalidValueException naming the variable, where the file holds no such key */
    static RSAPublicKey publicKey(String variable, String file) {
        return key(variable, file, "PUBLIC KEY", MAKE_PUBLIC, (factory, der) ->
                (RSAPublicKey) factory.generatePublic(new X509EncodedKeySpec(der)));
    }

    private static <K extends RSAKey> K key(String variable, String file, String label, String make,
            Decoder<K> decoder) {
        String text = text(variable, file, make);
        try {
            K key = decoder.decode(KeyFactory.getInstance("RSA"), der(text, label));
            if (key.getModulus().bitLength() >= MINIMUM_BITS) {
                return key;
            }
        } catch (GeneralSecurityException | IllegalArgumentException | ClassCastException notAKey) {
            // Said below: what the decoder found is no help, and might quote a key.
        }
        throw new InvalidValueException(variable, file, "must hold an RSA key of at least " + MINIMUM_BITS
                + " bits as PEM \"" + label + "\"; make one with: " + make);
    }

    private static String text(String variable, String file, String make) {
        try {
            return Files.readString(Path.of(file));
        } catch (NoSuchFileException | InvalidPathException absent) {
            throw new InvalidValueException(variable, file, "no such file; make one with: " + make);
        } catch (IOException unreadable) {
            throw new InvalidValueException(variable, file,
                    "cannot be read as text; let user " + System.getProperty("user.name") + " read a PEM file");
        }
    }

    private static byte[] der(String text, String label) {
        Matcher block = Pattern.compile("-----BEGIN " + label + "-----([A-Za-z0-9+/=\\s]+)-----END " + label + "-----")
                .matcher(text);
        if (!block.find()) {
            throw new IllegalArgumentException("no " + label);
        }
        return Base64.getMimeDecoder().decode(block.group(1));
    }
}
