package io.spikelab.tomcat.authz;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class PendingRevocationsTest {

    private final AtomicLong millis = new AtomicLong(1000);
    private final PendingRevocations pending = new PendingRevocations(3, new TokenClock(millis::get));

    @Test
    void keepsThemInOrderUntilTheyAreDone() {
        add("b", 5000);
        add("a", 5000);
        add("c", 5000);
        List<VerifiedToken> batch = pending.first(2);
        assertEquals(List.of(new VerifiedToken("b", 5000), new VerifiedToken("a", 5000)), batch);
        assertEquals(3, pending.size());
        pending.done(batch);
        assertEquals(List.of(new VerifiedToken("c", 5000)), pending.first(9));
    }

    @Test
    void keepsTheLaterExpiryAlthoughTheEarlierWasPublishedMeanwhile() {
        add("a", 5000);
        List<VerifiedToken> batch = pending.first(9);
        add("a", 9000);
        add("a", 4000);
        pending.done(batch);
        assertEquals(List.of(new VerifiedToken("a", 9000)), pending.first(9));
    }

    @Test
    void dropsWhatHasExpired() {
        add("a", 5000);
        add("b", 9000);
        millis.set(5000);
        assertEquals(1, pending.size());
        assertEquals(List.of(new VerifiedToken("b", 9000)), pending.first(9));
    }

    private void add(String id, long expiresMillis) {
        pending.add(new VerifiedToken(id, expiresMillis));
    }
}
