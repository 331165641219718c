package io.spikelab.tomcat.authz;

import java.time.Instant;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Ids of revoked tokens, each kept until its token expires and never evicted before.
 *
 * <p>Where the bound leaves no room, the revocation is refused and the list is incomplete: any token it does not
 * hold may be the revoked one. It is complete again when the last token whose revocation was refused has expired.
 */
public final class LocalBlacklist {

    private static final Logger LOG = LoggerFactory.getLogger(LocalBlacklist.class);

    private final int maximumEntries;
    private final TokenClock clock;
    private final Map<String, Long> expiryById = new ConcurrentHashMap<>();
    private final PriorityQueue<Entry> byExpiry = new PriorityQueue<>();
    private long expired;
    private volatile long incompleteUntil;

    private record Entry(Long expiresMillis, String id) implements Comparable<Entry> {

        @Override
        public int compareTo(Entry other) {
            return expiresMillis.compareTo(other.expiresMillis);
        }
    }

    LocalBlacklist(int maximumEntries, TokenClock clock) {
        this.maximumEntries = maximumEntries;
        this.clock = clock;
    }

    public int maximumEntries() {
        return maximumEntries;
    }

    /** Whether the token is revoked. Takes no lock; an expired token's id may or may not be found. */
    boolean holds(String id) {
        return expiryById.containsKey(id);
    }

    /**
     * Revokes a token until it expires.
     *
     * @return false where there is no room for it
     */
    synchronized boolean revoke(VerifiedToken token) {
        forgetExpired();
        Long known = expiryById.get(token.id());
        if (known != null && known >= token.expiresMillis()) {
            return true;
        }
        if (known == null && expiryById.size() >= maximumEntries) {
            becomeIncomplete(token);
            return false;
        }
        expiryById.put(token.id(), token.expiresMillis());
        byExpiry.add(new Entry(token.expiresMillis(), token.id()));
        return true;
    }

    /** Whether a token that is not held may have been revoked all the same. */
    boolean isIncomplete() {
        long until = incompleteUntil;
        return until != 0 && clock.millis() < until;
    }

    /** Entries whose tokens have not expired. */
    synchronized int size() {
        forgetExpired();
        return expiryById.size();
    }

    /** Entries that have been dropped because their tokens expired. */
    synchronized long expired() {
        forgetExpired();
        return expired;
    }

    private void becomeIncomplete(VerifiedToken token) {
        boolean wasComplete = !isIncomplete();
        incompleteUntil = Math.max(incompleteUntil, token.expiresMillis());
        if (wasComplete) {
            LOG.warn("the blacklist is full and a revocation was refused: no token is accepted before {}; "
                    + "raise TARGET_AUTHZ_BLACKLIST_MAX_ENTRIES={}", Instant.ofEpochMilli(incompleteUntil),
                    maximumEntries);
        }
    }

    /** The head of the queue may be out of date where an id was revoked again with a later expiry. */
    private void forgetExpired() {
        long now = clock.millis();
        while (!byExpiry.isEmpty() && byExpiry.peek().expiresMillis() <= now) {
            Entry entry = byExpiry.remove();
            if (expiryById.remove(entry.id(), entry.expiresMillis())) {
                expired++;
            }
        }
    }
}
