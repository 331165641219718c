package io.spikelab.tomcat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.yaml.snakeyaml.Yaml;

/** How many cases a fuzz test makes, of which seed, and the findings that are tried first. */
public final class Fuzzing {

    public static final long SEED = Long.getLong("fuzz.seed", 1);
    public static final int CASES = Integer.getInteger("fuzz.cases", 10_000);

    private static final Path FINDINGS = Path.of("../../tests/fuzz/findings");

    private Fuzzing() {
    }

    /** Of a case by its number, so that one can be made again alone. */
    public static Random random(int number) {
        return new Random(SEED * 1_000_000_007L + number);
    }

    /** The inputs that were findings; none where the project is not around the target. */
    public static List<byte[]> findings(String parser) throws IOException {
        Path file = FINDINGS.resolve(parser + ".json");
        if (!Files.exists(file)) {
            return List.of();
        }
        // What is JSON is YAML too.
        List<Map<String, String>> rows = new Yaml().load(Files.readString(file));
        return rows.stream().map(Fuzzing::decoded).toList();
    }

    private static byte[] decoded(Map<String, String> row) {
        return row.containsKey("text")
                ? row.get("text").getBytes(StandardCharsets.UTF_8)
                : Base64.getDecoder().decode(row.get("base64"));
    }

    /** Says what was done; bench/fuzz.py reads it. */
    public static void report(String parser) {
        System.out.println("fuzz " + parser + ": " + CASES + " cases with the seed " + SEED);
    }
}
