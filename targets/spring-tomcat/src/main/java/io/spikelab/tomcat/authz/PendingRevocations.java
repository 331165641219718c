package io.spikelab.tomcat.authz;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Revocations that have not been published, in their order, each id once. An expired one is dropped, so there are
 * never more than the local blacklist has entries.
 */
final class PendingRevocations {

    private final int maximumEntries;
    private final TokenClock clock;
    private final Map<String, VerifiedToken> byId = new LinkedHashMap<>();

    PendingRevocations(int maximumEntries, TokenClock clock) {
        this.maximumEntries = maximumEntries;
        this.clock = clock;
    }

    /** Adds one that the local blacklist holds. */
    synchronized void add(VerifiedToken token) {
        if (byId.size() >= maximumEntries) {
            forgetExpired();
        }
        byId.merge(token.id(), token, (known, added) -> known.expiresMillis() < added.expiresMillis() ? added : known);
        notifyAll();
    }

    synchronized int size() {
        forgetExpired();
        return byId.size();
    }

    /** Waits until there is one. */
    synchronized void await() throws InterruptedException {
        while (size() == 0) {
            wait();
        }
    }

    /** Waits until there is none. */
    synchronized void awaitNone(long millis) throws InterruptedException {
        long deadline = System.nanoTime() + millis * 1_000_000;
        for (long left = millis; size() > 0 && left > 0; left = (deadline - System.nanoTime()) / 1_000_000) {
            wait(left);
        }
    }

    /** The oldest ones, which stay until they are {@link #done}. */
    synchronized List<VerifiedToken> first(int most) {
        forgetExpired();
        return byId.values().stream().limit(most).toList();
    }

    synchronized void done(List<VerifiedToken> published) {
        published.forEach(token -> byId.remove(token.id(), token));
        notifyAll();
    }

    private void forgetExpired() {
        long now = clock.millis();
        byId.values().removeIf(token -> token.expiresMillis() <= now);
    }
}
