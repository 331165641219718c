package io.spikelab.tomcat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;

/**
 * Ports of loopback for processes that listen later.
 *
 * <p>They lie below the ports that the kernel gives out by itself: one of those may go to a client or to another
 * test's server before its process listens, or while that process is down.
 */
final class FreePorts {

    static final int FIRST = 10_000;
    /** From here on the tests in Python look for theirs. */
    static final int END = 21_000;
    /** Tests that run beside these begin at another of so many places. */
    private static final int PLACES = 110;

    private static int next = FIRST + (int) (ProcessHandle.current().pid() % PLACES) * ((END - FIRST) / PLACES);

    private FreePorts() {
    }

    /** A port that nothing listens on, and that none was given before. */
    static synchronized int take() {
        for (int tried = FIRST; tried < END; tried++) {
            int port = next;
            next = next + 1 < END ? next + 1 : FIRST;
            if (isFree(port)) {
                return port;
            }
        }
        throw new IllegalStateException("no free port from " + FIRST + " to " + END);
    }

    private static boolean isFree(int port) {
        try (ServerSocket probe = new ServerSocket()) {
            probe.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
            return true;
        } catch (IOException taken) {
            return false;
        }
    }
}
