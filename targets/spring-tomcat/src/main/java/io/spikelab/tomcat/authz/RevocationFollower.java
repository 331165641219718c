package io.spikelab.tomcat.authz;

import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.resps.StreamEntry;

/**
 * Brings the revocations of the stream to the local blacklist.
 *
 * <p>Whenever it connects it reads the whole stream, and has published again what the local blacklist holds and
 * the stream does not: a Redis that lost its data, or the last seconds of it, gets them back.
 */
final class RevocationFollower extends RedisLoop {

    private static final Logger LOG = LoggerFactory.getLogger(RevocationFollower.class);
    private static final long CHECK_NANOS = Duration.ofSeconds(1).toNanos();

    private final LocalBlacklist blacklist;
    private final PendingRevocations pending;
    private final TokenClock clock;
    private final BrokerMetrics metrics;
    private final Gate loaded;
    private volatile boolean connected;
    /** The newest entry that has been counted. */
    private StreamEntryID newest = RevocationStream.BEGIN;
    private boolean saidWhatGarbageIs;

    RevocationFollower(RedisAddress address, LocalBlacklist blacklist, PendingRevocations pending, TokenClock clock,
            BrokerMetrics metrics, Gate loaded) {
        super("revocation-follower", address);
        this.blacklist = blacklist;
        this.pending = pending;
        this.clock = clock;
        this.metrics = metrics;
        this.loaded = loaded;
    }

    boolean isConnected() {
        return connected;
    }

    @Override
    void work(Jedis redis) throws InterruptedException {
        try {
            startAnewIfLost(newest, redis);
            readWhole(redis);
            connect();
            follow(redis);
        } finally {
            connected = false;
        }
    }

    @Override
    String consequence() {
        return loaded.isOpen() ? "revocations made elsewhere arrive late" : "not ready until it has answered";
    }

    private void connect() {
        if (loaded.isOpen()) {
            metrics.countReconnect();
        }
        LOG.info("follows the revocations at {}, {} in force", address(), blacklist.size());
        connected = true;
        loaded.open();
        succeeded();
    }

    private void follow(Jedis redis) {
        StreamEntryID seen = newest;
        long checked = System.nanoTime();
        while (!isStopped()) {
            RevocationStream.await(newest, redis).forEach(this::apply);
            if (System.nanoTime() - checked >= CHECK_NANOS) {
                if (startAnewIfLost(seen, redis)) {
                    readWhole(redis);
                }
                seen = newest;
                checked = System.nanoTime();
            }
        }
    }

    /** A stream without an entry that was read is not the one read so far, and may have lower ids. */
    private boolean startAnewIfLost(StreamEntryID seen, Jedis redis) {
        boolean lost = RevocationStream.isLost(seen, redis, clock.millis());
        if (lost) {
            LOG.warn("the stream of revocations at {} was lost: it is read anew, and filled again", address());
            newest = RevocationStream.BEGIN;
        }
        return lost;
    }

    private void readWhole(Jedis redis) {
        Set<String> published = new HashSet<>();
        StreamEntryID last = RevocationStream.BEGIN;
        List<StreamEntry> page = RevocationStream.after(last, redis);
        while (!page.isEmpty()) {
            page.forEach(this::apply);
            page.forEach(entry -> RevocationStream.revocation(entry).ifPresent(token -> published.add(token.id())));
            last = page.get(page.size() - 1).getID();
            page = RevocationStream.after(last, redis);
        }
        blacklist.entries().stream().filter(token -> !published.contains(token.id())).forEach(pending::add);
    }

    /** An entry that is read again is applied again, which does no harm, but is not counted again. */
    private void apply(StreamEntry entry) {
        boolean applied = RevocationStream.revocation(entry).map(this::revoke).orElseGet(() -> refuse(entry));
        if (entry.getID().compareTo(newest) > 0) {
            newest = entry.getID();
            metrics.countEntry(applied);
        }
    }

    private boolean revoke(VerifiedToken token) {
        return token.expiresMillis() <= clock.millis() || blacklist.revoke(token);
    }

    private boolean refuse(StreamEntry entry) {
        if (!saidWhatGarbageIs) {
            LOG.warn("entry {} of {} is no revocation; this and others like it are counted as failed", entry.getID(),
                    RevocationStream.NAME);
            saidWhatGarbageIs = true;
        }
        return false;
    }
}
