package io.spikelab.tomcat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;

/** How many cases a fuzz test makes, of which seed, and the corpus that is tried first. */
public final class Fuzzing {

    public static final long SEED = Long.getLong("fuzz.seed", 1);
    public static final int CASES = Integer.getInteger("fuzz.cases", 10_000);

    private static final Path CORPUS = Path.of("../../tests/fuzz/corpus");

    private Fuzzing() {
    }

    /** Of a case by its number, so that one can be made again alone. */
    public static Random random(int number) {
        return new Random(SEED * 1_000_000_007L + number);
    }

    /** The inputs that were findings; none where the project is not around the target. */
    public static List<byte[]> corpus(String parser) throws IOException {
        List<byte[]> inputs = new ArrayList<>();
        Path folder = CORPUS.resolve(parser);
        if (Files.isDirectory(folder)) {
            try (Stream<Path> files = Files.list(folder)) {
                for (Path file : files.sorted().toList()) {
                    inputs.add(Files.readAllBytes(file));
                }
            }
        }
        return inputs;
    }

    /** Says what was done; bench/fuzz.py reads it. */
    public static void report(String parser) {
        System.out.println("fuzz " + parser + ": " + CASES + " cases with the seed " + SEED);
    }
}
