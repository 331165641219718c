package io.spikelab.tomcat.authz;

import java.time.Instant;
import java.util.List;
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
public final class LocalBlacklist implements Blacklist {

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

    /** Takes no lock; an expired token's id may or may not be found. */
    @Override
    public boolean holds(String id) {
        return expiryById.containsKey(id);
    }

    @Override
    public synchronized boolean revoke(VerifiedToken token) {
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

    @Override
    public boolean isIncomplete() {
        long until = incompleteUntil;
        return until != 0 && clock.millis() < until;
    }

    /** Entries whose tokens have not expired. */
    synchronized int size() {
        forgetExpired();
        return expiryById.size();
    }

    /** Every entry whose token has not expired. */
    synchronized List<VerifiedToken> entries() {
        forgetExpired();
        return expiryById.entrySet().stream().map(entry -> new VerifiedToken(entry.getKey(), entry.getValue()))
                .toList();
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
