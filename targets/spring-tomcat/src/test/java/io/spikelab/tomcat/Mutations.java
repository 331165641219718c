package io.spikelab.tomcat;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/** Damage to a valid input, which follows from the Random that is given. */
public final class Mutations {

    private static final List<String> WORDS = List.of("", " ", "\t", "\r\n", "\n", "\0", "\r\n\r\n", ":", ";", ",", "=",
            "%", "%00", "%2e%2e", "%", "\u00ff", "/../", "//", "?", "&", "#", "..", ".", "\"", "{", "}", "[", "]", "null", "0",
            "-1", "1e999", "9".repeat(40), "9223372036854775808", "true", "a".repeat(300), "\\u0000", "\\ud800",
            "Bearer ", "bearer\t", "Basic ", "none", "RS256", "HS256", "\"alg\":\"none\"", "\"crit\":[\"exp\"]",
            "chunked", "Transfer-Encoding: chunked\r\n", "Content-Length: 5\r\n", "Content-Length: -1\r\n",
            "Expect: 100-continue\r\n", "Host: a\r\n", "HTTP/9.9", "HTTP/1.0", "TRACE", "CONNECT", "POST");

    private Mutations() {
    }

    /** One to three changes: bytes, words, pieces left out, doubled or taken from another input. */
    public static byte[] mutate(byte[] data, List<byte[]> others, Random random) {
        byte[] changed = data;
        for (int i = random.nextInt(3); i >= 0; i--) {
            changed = once(changed, others, random);
        }
        return changed;
    }

    private static byte[] once(byte[] data, List<byte[]> others, Random random) {
        int at = random.nextInt(data.length + 1);
        int end = Math.min(data.length, at + 1 + random.nextInt(random.nextInt(4) == 0 ? 60 : 3));
        return switch (random.nextInt(7)) {
            case 0 -> joined(data, at, end, flipped(data, at, end, random));
            case 1 -> joined(data, at, end, new byte[0]);
            case 2 -> joined(data, at, at, Arrays.copyOfRange(data, at, end));
            case 3 -> joined(data, at, end, word(random));
            case 4 -> joined(data, at, at, word(random));
            case 5 -> joined(data, at, at, piece(others.get(random.nextInt(others.size())), random));
            default -> random.nextInt(4) == 0 ? Arrays.copyOf(data, at) : joined(data, at, end, bytes(end - at, random));
        };
    }

    private static byte[] word(Random random) {
        return WORDS.get(random.nextInt(WORDS.size())).getBytes(StandardCharsets.ISO_8859_1);
    }

    private static byte[] piece(byte[] other, Random random) {
        int from = random.nextInt(other.length + 1);
        return Arrays.copyOfRange(other, from, Math.min(other.length, from + random.nextInt(80)));
    }

    private static byte[] bytes(int length, Random random) {
        byte[] bytes = new byte[length];
        random.nextBytes(bytes);
        return bytes;
    }

    private static byte[] flipped(byte[] data, int at, int end, Random random) {
        byte[] part = Arrays.copyOfRange(data, at, end);
        for (int i = 0; i < part.length; i++) {
            part[i] ^= (byte) (1 << random.nextInt(8));
        }
        return part;
    }

    private static byte[] joined(byte[] data, int at, int end, byte[] between) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        all.write(data, 0, at);
        all.writeBytes(between);
        all.write(data, end, data.length - end);
        return all.toByteArray();
    }
}
