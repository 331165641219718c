package io.spikelab.tomcat.authz;

import java.util.concurrent.CountDownLatch;

/** Opens once, or is closed for good; whoever waits at it learns which. */
final class Gate {

    private final CountDownLatch decided = new CountDownLatch(1);
    private volatile boolean open;

    void open() {
        open = true;
        decided.countDown();
    }

    /** Lets go whoever waits; an open gate stays open. */
    void giveUp() {
        decided.countDown();
    }

    boolean isOpen() {
        return open;
    }

    /** @throws InterruptedException where it did not open */
    void await() throws InterruptedException {
        decided.await();
        if (!open) {
            throw new InterruptedException();
        }
    }
}
