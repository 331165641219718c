package io.spikelab.tomcat.authz;

/** The local blacklist, shared with the other targets by a stream in Redis; a look-up never waits for Redis. */
final class SharedBlacklist implements Blacklist {

    private final LocalBlacklist local;
    private final PendingRevocations pending;
    /** Open when the stream has been read once: before, any token may be a revoked one. */
    private final Gate loaded = new Gate();
    private final RevocationFollower follower;
    private final RevocationPublisher publisher;

    SharedBlacklist(LocalBlacklist local, RedisAddress address, TokenClock clock, BrokerMetrics metrics) {
        this.local = local;
        this.pending = new PendingRevocations(local.maximumEntries(), clock);
        this.follower = new RevocationFollower(address, local, pending, clock, metrics, loaded);
        this.publisher = new RevocationPublisher(address, pending, clock);
        metrics.stateOf(follower::isConnected, pending::size);
    }

    @Override
    public boolean holds(String id) throws RefusedException {
        requireLoaded();
        return local.holds(id);
    }

    /** It is in force when this returns; the others have it when it is published. */
    @Override
    public boolean revoke(VerifiedToken token) throws RefusedException {
        requireLoaded();
        if (!local.revoke(token)) {
            return false;
        }
        pending.add(token);
        return true;
    }

    @Override
    public boolean isIncomplete() {
        return local.isIncomplete();
    }

    @Override
    public void prepare() throws InterruptedException {
        publisher.start();
        follower.start();
        loaded.await();
    }

    @Override
    public void close() {
        publisher.stop();
        follower.stop();
        loaded.giveUp();
    }

    private void requireLoaded() throws RefusedException {
        if (!loaded.isOpen()) {
            throw new RefusedException(Refusal.BLACKLIST_UNAVAILABLE);
        }
    }
}
