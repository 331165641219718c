package io.spikelab.tomcat.authz;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import redis.clients.jedis.Jedis;

/** A thread with a connection to Redis of its own, which it makes again after each failure, with growing pauses. */
abstract class RedisLoop {

    private static final Logger LOG = LoggerFactory.getLogger(RedisLoop.class);
    private static final long SHORTEST_PAUSE_MILLIS = 100;
    private static final long LONGEST_PAUSE_MILLIS = 2000;

    private final RedisAddress address;
    private final Thread thread;
    private volatile boolean stopped;
    private boolean failing;
    private long pauseMillis = SHORTEST_PAUSE_MILLIS;

    RedisLoop(String name, RedisAddress address) {
        this.address = address;
        this.thread = new Thread(this::run, name);
        thread.setDaemon(true);
    }

    void start() {
        thread.start();
    }

    /** Does not wait: a thread that reads from Redis notices within seconds. */
    void stop() {
        stopped = true;
        thread.interrupt();
    }

    boolean isStopped() {
        return stopped;
    }

    RedisAddress address() {
        return address;
    }

    /** Waits until there is something to connect for. */
    void awaitWork() throws InterruptedException {
    }

    /** Works on a new connection until it fails, the loop is stopped, or there is nothing more to do. */
    abstract void work(Jedis redis) throws InterruptedException;

    /** What a failure means, as the rest of a sentence that names it. */
    abstract String consequence();

    /** To be said as soon as the work goes well: the next failure is news, and is retried at once. */
    void succeeded() {
        failing = false;
        pauseMillis = SHORTEST_PAUSE_MILLIS;
    }

    private void run() {
        try {
            while (!stopped) {
                awaitWork();
                connectAndWork();
            }
        } catch (InterruptedException stop) {
            // Only a stop interrupts.
        }
    }

    private void connectAndWork() throws InterruptedException {
        try (Jedis redis = address.connect()) {
            work(redis);
        } catch (RuntimeException failure) {
            if (!stopped) {
                report(failure);
                Thread.sleep(pauseMillis);
                pauseMillis = Math.min(2 * pauseMillis, LONGEST_PAUSE_MILLIS);
            }
        }
    }

    /** One line for each outage, however long it lasts. */
    private void report(RuntimeException failure) {
        if (!failing) {
            LOG.warn("Redis at {} fails ({}): {}", address, reason(failure), consequence());
        }
        failing = true;
    }

    /** The cause at the root: what Jedis makes of it says less. */
    static String reason(Throwable failure) {
        Throwable root = failure;
        while (root.getCause() != null) {
            root = root.getCause();
        }
        return root.getMessage() == null ? root.getClass().getSimpleName() : root.getMessage();
    }
}
