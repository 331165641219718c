package io.spikelab.tomcat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.params.XAddParams;

/** A redis-server from the PATH on a port of its own, which keeps nothing on disk. */
final class RedisServer implements AutoCloseable {

    static final String STREAM = "spikelab:revocations";

    /** Ends what hangs; far more than a start takes, also on a busy machine. */
    private static final Duration LIMIT = Duration.ofMinutes(2);

    private final Path output = Files.createTempFile("redis", ".out");
    private final int port;
    private Process process;

    /** Only takes a port. */
    RedisServer() throws IOException {
        port = FreePorts.take();
    }

    static RedisServer started() throws IOException, InterruptedException {
        RedisServer server = new RedisServer();
        server.start();
        return server;
    }

    void start() throws IOException, InterruptedException {
        ProcessBuilder builder = new ProcessBuilder("redis-server", "--port", String.valueOf(port), "--bind",
                "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", Path.of("").toAbsolutePath().toString());
        builder.redirectErrorStream(true).redirectOutput(output.toFile());
        try {
            process = builder.start();
        } catch (IOException absent) {
            throw new IllegalStateException("redis-server is not on the PATH: install Redis 7 (Debian: apt-get "
                    + "install redis-server)");
        }
        awaitAnswer();
    }

    private void awaitAnswer() throws IOException, InterruptedException {
        long deadline = System.nanoTime() + LIMIT.toNanos();
        while (true) {
            try (Jedis client = client()) {
                client.ping();
                return;
            } catch (JedisConnectionException notYet) {
                if (!process.isAlive()) {
                    throw new IllegalStateException("redis-server ended: " + said(), notYet);
                }
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("redis-server does not answer on port " + port + ": " + said(),
                            notYet);
                }
                Thread.sleep(20);
            }
        }
    }

    private String said() throws IOException {
        return Files.readString(output);
    }

    Jedis client() {
        return new Jedis("127.0.0.1", port);
    }

    String url() {
        return "redis://127.0.0.1:" + port;
    }

    /** Adds an entry to the stream, with fields as name, value, name, value. */
    void publish(String... fields) {
        try (Jedis client = client()) {
            client.xadd(STREAM, XAddParams.xAddParams(), RunningTarget.settings(fields));
        }
    }

    /** Sends SIGKILL; all its data is gone. */
    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    /** Sends SIGSTOP: its port takes connections, and nobody answers. */
    void freeze() throws IOException, InterruptedException {
        signal("-STOP");
    }

    void thaw() throws IOException, InterruptedException {
        signal("-CONT");
    }

    private void signal(String name) throws IOException, InterruptedException {
        new ProcessBuilder("kill", name, String.valueOf(process.pid())).start().waitFor(5, TimeUnit.SECONDS);
    }

    @Override
    public void close() {
        if (process != null) {
            process.destroyForcibly();
        }
        output.toFile().delete();
    }
}
