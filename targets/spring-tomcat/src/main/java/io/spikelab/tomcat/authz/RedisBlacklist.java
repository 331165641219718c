package io.spikelab.tomcat.authz;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.exceptions.JedisException;

/** The blacklist in Redis, asked for each token; while it does not answer, no token is accepted. */
final class RedisBlacklist implements Blacklist {

    private static final Logger LOG = LoggerFactory.getLogger(RedisBlacklist.class);
    /** To get a connection, and again to get the answer: a second in all. */
    private static final int TIMEOUT_MILLIS = 500;

    private final RedisAddress address;
    private final RedisClient redis;
    private final TokenClock clock;
    private final Gate reached = new Gate();
    private final AtomicBoolean failing = new AtomicBoolean();
    private final RedisLoop probe;

    RedisBlacklist(RedisAddress address, int connections, TokenClock clock) {
        this.address = address;
        this.redis = RedisClient.builder().hostAndPort(address.hostAndPort())
                .clientConfig(RedisAddress.timeouts(TIMEOUT_MILLIS)).poolConfig(pool(connections)).build();
        this.clock = clock;
        this.probe = new Probe();
    }

    private static ConnectionPoolConfig pool(int connections) {
        ConnectionPoolConfig pool = new ConnectionPoolConfig();
        pool.setMaxTotal(connections);
        pool.setMaxIdle(connections);
        pool.setMaxWait(Duration.ofMillis(TIMEOUT_MILLIS));
        pool.setJmxEnabled(false);
        return pool;
    }

    @Override
    public boolean holds(String id) throws RefusedException {
        return answered(() -> redis.exists(RevocationStream.key(id)));
    }

    @Override
    public boolean revoke(VerifiedToken token) throws RefusedException {
        return answered(() -> {
            try (Pipeline pipeline = redis.pipelined()) {
                RevocationStream.publish(pipeline, List.of(token), clock.millis());
            }
            return true;
        });
    }

    @Override
    public boolean isIncomplete() {
        return false;
    }

    @Override
    public void prepare() throws InterruptedException {
        probe.start();
        reached.await();
    }

    @Override
    public void close() {
        probe.stop();
        reached.giveUp();
        redis.close();
    }

    private boolean answered(Supplier<Boolean> command) throws RefusedException {
        try {
            boolean answer = command.get();
            if (failing.get() && failing.compareAndSet(true, false)) {
                LOG.info("Redis at {} answers again", address);
            }
            return answer;
        } catch (JedisException failure) {
            if (failing.compareAndSet(false, true)) {
                // Those that wait in the pool are as broken, and each would refuse a token yet.
                redis.getPool().clear();
                LOG.warn("Redis at {} fails ({}): no token is accepted until it answers", address,
                        RedisLoop.reason(failure));
            }
            throw new RefusedException(Refusal.BLACKLIST_UNAVAILABLE);
        }
    }

    /** Waits at the start for the first answer. */
    private final class Probe extends RedisLoop {

        Probe() {
            super("redis-probe", address);
        }

        @Override
        void work(Jedis connection) {
            connection.exists(RevocationStream.key(""));
            reached.open();
            super.stop();
        }

        @Override
        String consequence() {
            return "not ready until it has answered";
        }
    }
}
