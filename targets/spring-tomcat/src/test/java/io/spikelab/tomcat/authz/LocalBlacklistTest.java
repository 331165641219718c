package io.spikelab.tomcat.authz;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class LocalBlacklistTest {

    private final AtomicLong millis = new AtomicLong(1000);
    private final LocalBlacklist blacklist = new LocalBlacklist(3, new TokenClock(millis::get));

    @Test
    void holdsATokenUntilItExpires() {
        assertTrue(blacklist.revoke(new VerifiedToken("a", 5000)));
        assertTrue(blacklist.revoke(new VerifiedToken("b", 9000)));
        millis.set(4999);
        assertEquals(2, blacklist.size());
        assertTrue(blacklist.holds("a"));
        millis.set(5000);
        assertEquals(1, blacklist.size());
        assertEquals(1, blacklist.expired());
        assertFalse(blacklist.holds("a"));
        assertTrue(blacklist.holds("b"));
    }

    @Test
    void keepsTheLaterExpiryOfAnIdRevokedTwice() {
        for (long expires : new long[] {5000, 9000, 4000}) {
            assertTrue(blacklist.revoke(new VerifiedToken("a", expires)));
        }
        millis.set(8999);
        assertEquals(1, blacklist.size());
        assertTrue(blacklist.holds("a"));
        millis.set(9000);
        assertEquals(0, blacklist.size());
        assertEquals(1, blacklist.expired());
    }

    @Test
    void isIncompleteUntilTheLastRefusedTokenHasExpired() {
        fill();
        assertFalse(blacklist.isIncomplete());
        assertFalse(blacklist.revoke(new VerifiedToken("refused", 12_000)));
        assertFalse(blacklist.revoke(new VerifiedToken("refused too", 11_000)));
        assertTrue(blacklist.isIncomplete());
        assertTrue(blacklist.holds("0"));
        millis.set(11_999);
        assertEquals(0, blacklist.size());
        assertTrue(blacklist.isIncomplete());
        millis.set(12_000);
        assertFalse(blacklist.isIncomplete());
    }

    @Test
    void hasRoomAgainWhenAnEntryExpires() {
        fill();
        millis.set(5000);
        assertTrue(blacklist.revoke(new VerifiedToken("next", 9000)));
        assertFalse(blacklist.isIncomplete());
    }

    @Test
    void losesNothingToConcurrentRevocations() throws Exception {
        int threads = 8;
        int each = 2000;
        LocalBlacklist shared = new LocalBlacklist(threads * each - 5, new TokenClock(millis::get));
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        List<Future<Integer>> refusals = new ArrayList<>();
        for (int thread = 0; thread < threads; thread++) {
            int base = thread * each;
            refusals.add(pool.submit(() -> {
                int refused = 0;
                for (int i = base; i < base + each; i++) {
                    boolean revoked = shared.revoke(new VerifiedToken("id" + i, 9000));
                    assertTrue(shared.holds("id" + i) == revoked);
                    refused += revoked ? 0 : 1;
                }
                return refused;
            }));
        }
        int refused = 0;
        for (Future<Integer> refusal : refusals) {
            refused += refusal.get();
        }
        pool.shutdown();
        assertEquals(5, refused);
        assertEquals(threads * each - 5, shared.size());
        assertTrue(shared.isIncomplete());
    }

    private void fill() {
        for (int i = 0; i < 3; i++) {
            assertTrue(blacklist.revoke(new VerifiedToken(String.valueOf(i), 5000)));
        }
    }
}
