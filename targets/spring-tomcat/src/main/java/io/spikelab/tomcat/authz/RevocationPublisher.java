package io.spikelab.tomcat.authz;

import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Pipeline;

/** Publishes what is revoked here, in order; while Redis is away it waits. */
final class RevocationPublisher extends RedisLoop {

    private static final Logger LOG = LoggerFactory.getLogger(RevocationPublisher.class);
    /** So many for each round trip. */
    private static final int BATCH = 500;
    private static final long STOP_MILLIS = 300;

    private final PendingRevocations pending;
    private final TokenClock clock;

    RevocationPublisher(RedisAddress address, PendingRevocations pending, TokenClock clock) {
        super("revocation-publisher", address);
        this.pending = pending;
        this.clock = clock;
    }

    @Override
    void awaitWork() throws InterruptedException {
        pending.await();
    }

    @Override
    void work(Jedis redis) throws InterruptedException {
        while (!isStopped()) {
            pending.await();
            List<VerifiedToken> batch = pending.first(BATCH);
            try (Pipeline pipeline = redis.pipelined()) {
                RevocationStream.publish(pipeline, batch, clock.millis());
            }
            pending.done(batch);
            succeeded();
        }
    }

    @Override
    String consequence() {
        return "revocations made here are kept and published later";
    }

    /** Leaves a little time for what is still to be published. */
    @Override
    void stop() {
        try {
            pending.awaitNone(STOP_MILLIS);
        } catch (InterruptedException hurried) {
            Thread.currentThread().interrupt();
        }
        int lost = pending.size();
        if (lost > 0) {
            LOG.warn("stopped with {} revocations unpublished: other targets accept these tokens", lost);
        }
        super.stop();
    }
}
