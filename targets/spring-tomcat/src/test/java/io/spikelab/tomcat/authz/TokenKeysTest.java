package io.spikelab.tomcat.authz;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.spikelab.tomcat.InvalidValueException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TokenKeysTest {

    private static final String MAKE_PRIVATE =
            "; make one with: openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out FILE";
    private static final String MAKE_PUBLIC = "; make one with: openssl pkey -in PRIVATE_FILE -pubout -out FILE";

    private final SigningKit kit = new SigningKit();
    @TempDir
    private Path folder;

    @Test
    void takesThePublicHalfFromThePrivateKey() throws IOException {
        TokenKeys keys = TokenKeys.from(Map.of(TokenKeys.PRIVATE, kit.writePrivate(folder.resolve("a")).toString()));
        assertTrue(keys.canSign());
        assertEquals(kit.pair.getPublic(), keys.pair().getPublic());
    }

    @Test
    void onlyVerifiesWithThePublicHalf() throws IOException {
        TokenKeys keys = TokenKeys.from(Map.of(TokenKeys.PRIVATE, " ",
                TokenKeys.PUBLIC, kit.writePublic(folder.resolve("a")).toString()));
        assertFalse(keys.canSign());
        assertNull(keys.pair().getPrivate());
    }

    @Test
    void makesAPairOfItsOwnWhereNoneIsGiven() {
        TokenKeys keys = TokenKeys.from(Map.of());
        assertTrue(keys.canSign() && keys.madeForThisRun());
        assertEquals(keys.pair(), keys.pair());
    }

    @Test
    void refusesHalvesOfDifferentPairs() throws IOException {
        Path other = new SigningKit().writePublic(folder.resolve("other"));
        assertRefused(Map.of(TokenKeys.PRIVATE, kit.writePrivate(folder.resolve("a")).toString(),
                        TokenKeys.PUBLIC, other.toString()),
                "AUTHZ_PUBLIC_KEY_FILE=" + other + ": does not belong to AUTHZ_PRIVATE_KEY_FILE; "
                        + "leave it out, or make it from that file");
    }

    @Test
    void refusesAFileThatIsNotThere() {
        assertRefused(Map.of(TokenKeys.PRIVATE, "/absent\nfile"),
                "AUTHZ_PRIVATE_KEY_FILE=/absent?file: no such file" + MAKE_PRIVATE);
    }

    @Test
    void refusesWhatIsNoText() {
        assertRefused(Map.of(TokenKeys.PUBLIC, folder.toString()), "AUTHZ_PUBLIC_KEY_FILE=" + folder
                + ": cannot be read as text; let user " + System.getProperty("user.name") + " read a PEM file");
    }

    @Test
    void refusesEveryOtherKey() throws IOException {
        Path small = new SigningKit("RSA", 1024).writePrivate(folder.resolve("small"));
        Path curve = new SigningKit("EC", 256).writePrivate(folder.resolve("curve"));
        Path half = kit.writePublic(folder.resolve("half"));
        Path broken = folder.resolve("broken");
        Files.writeString(broken, Files.readString(kit.writePrivate(broken)).replace("\n", "\n/").substring(0, 400)
                + "\n-----END PRIVATE KEY-----\n");
        Path empty = Files.createFile(folder.resolve("empty"));
        for (Path file : new Path[] {small, curve, half, broken, empty}) {
            assertRefused(Map.of(TokenKeys.PRIVATE, file.toString()), "AUTHZ_PRIVATE_KEY_FILE=" + file
                    + ": must hold an RSA key of at least 2048 bits as PEM \"PRIVATE KEY\"" + MAKE_PRIVATE);
        }
        Path whole = kit.writePrivate(folder.resolve("whole"));
        assertRefused(Map.of(TokenKeys.PUBLIC, whole.toString()), "AUTHZ_PUBLIC_KEY_FILE=" + whole
                + ": must hold an RSA key of at least 2048 bits as PEM \"PUBLIC KEY\"" + MAKE_PUBLIC);
    }

    private static void assertRefused(Map<String, String> environment, String line) {
        assertEquals(line, assertThrows(InvalidValueException.class, () -> TokenKeys.from(environment)).getMessage());
    }
}
