package io.spikelab.tomcat.authz;

import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/**
 * Time of day that never goes back.
 *
 * <p>A revocation is forgotten when its token expires: were the clock then set back, the token would be valid
 * again and its revocation gone.
 */
final class TokenClock {

    private final LongSupplier wallMillis;
    private final AtomicLong latest = new AtomicLong();

    TokenClock(LongSupplier wallMillis) {
        this.wallMillis = wallMillis;
    }

    /** Milliseconds since the epoch. */
    long millis() {
        long now = wallMillis.getAsLong();
        long seen = latest.get();
        while (now > seen && !latest.compareAndSet(seen, now)) {
            seen = latest.get();
        }
        return Math.max(now, seen);
    }
}
