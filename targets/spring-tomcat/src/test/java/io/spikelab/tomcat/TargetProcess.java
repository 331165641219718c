package io.spikelab.tomcat;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** The target as a process of its own, with its exit code and what it printed. */
final class TargetProcess extends TargetClient {

    /** Ends what hangs; far more than a start takes, also on a busy machine. */
    private static final Duration LIMIT = Duration.ofMinutes(2);

    private final Path output = Files.createTempFile("target", ".out");
    private final Path errors = Files.createTempFile("target", ".err");
    private final Map<String, String> environment;
    private final Process process;

    TargetProcess(Map<String, String> environment) throws IOException {
        this.environment = environment;
        ProcessBuilder builder = new ProcessBuilder(System.getProperty("java.home") + "/bin/java",
                "-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path"), Main.class.getName());
        builder.environment().keySet().removeIf(name -> name.startsWith("T") || name.startsWith("AUTHZ_")
                || name.contains("JAVA"));
        builder.environment().putAll(environment);
        process = builder.redirectOutput(new File(output.toString())).redirectError(new File(errors.toString()))
                .start();
    }

    /** Starts on ports of its own, with the settings given beside them. */
    static TargetProcess onFreePorts(Map<String, String> settings) throws IOException {
        Map<String, String> environment = new HashMap<>(settings);
        environment.put("TARGET_PORT", String.valueOf(FreePorts.take()));
        environment.put("TARGET_MANAGEMENT_PORT", String.valueOf(FreePorts.take()));
        return new TargetProcess(environment);
    }

    @Override
    int port() {
        return Integer.parseInt(environment.get("TARGET_PORT"));
    }

    @Override
    int managementPort() {
        return Integer.parseInt(environment.get("TARGET_MANAGEMENT_PORT"));
    }

    /** Waits for the line that says that the target listens. */
    void awaitStarted() throws IOException, InterruptedException {
        awaitOutput("listens on");
    }

    /** Waits until it has printed this text. */
    void awaitOutput(String text) throws IOException, InterruptedException {
        long deadline = System.nanoTime() + LIMIT.toNanos();
        while (!Files.readString(output).contains(text)) {
            if (!process.isAlive() || System.nanoTime() > deadline) {
                throw new IllegalStateException("has not printed \"" + text + "\": " + Files.readString(output)
                        + errorLines());
            }
            Thread.sleep(20);
        }
    }

    int exitCode() throws InterruptedException {
        if (!process.waitFor(LIMIT.toSeconds(), TimeUnit.SECONDS)) {
            throw new IllegalStateException("still running after " + LIMIT.toSeconds() + " s");
        }
        return process.exitValue();
    }

    List<String> errorLines() throws IOException {
        return Files.readAllLines(errors);
    }

    List<String> outputLines() throws IOException {
        return Files.readAllLines(output);
    }

    /** Sends SIGTERM. */
    void terminate() {
        process.destroy();
    }

    @Override
    public void close() throws IOException {
        process.destroyForcibly();
        Files.delete(output);
        Files.delete(errors);
    }
}
