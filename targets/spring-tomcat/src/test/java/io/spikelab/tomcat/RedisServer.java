package io.spikelab.tomcat;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.params.XAddParams;

/** A redis-server from the PATH on a port of its own, which keeps nothing on disk. */
final class RedisServer implements AutoCloseable {

    static final String STREAM = "spikelab:revocations";

    private final int port;
    private Process process;

    /** Only takes a port. */
    RedisServer() throws IOException {
        port = TargetProcess.freePort();
    }

    static RedisServer started() throws IOException, InterruptedException {
        RedisServer server = new RedisServer();
        server.start();
        return server;
    }

    void start() throws IOException, InterruptedException {
        ProcessBuilder builder = new ProcessBuilder("redis-server", "--port", String.valueOf(port), "--bind",
                "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", Path.of("").toAbsolutePath().toString());
        builder.redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD);
        try {
            process = builder.start();
        } catch (IOException absent) {
            throw new IllegalStateException("redis-server is not on the PATH: install Redis 7 (Debian: apt-get "
                    + "install redis-server)");
        }
        awaitAnswer();
    }

    private void awaitAnswer() throws InterruptedException {
        long deadline = System.nanoTime() + Duration.ofSeconds(10).toNanos();
        while (true) {
            try (Jedis client = client()) {
                client.ping();
                return;
            } catch (JedisConnectionException notYet) {
                if (!process.isAlive() || System.nanoTime() > deadline) {
                    throw new IllegalStateException("redis-server does not answer on port " + port, notYet);
                }
                Thread.sleep(20);
            }
        }
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
    }
}
