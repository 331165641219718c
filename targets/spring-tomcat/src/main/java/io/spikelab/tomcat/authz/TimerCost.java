package io.spikelab.tomcat.authz;

import java.util.Arrays;

/** What a timer reads when nothing lies between its start and its end. */
final class TimerCost {

    private static final int PAIRS = 10_000;
    /** The earlier rounds only get the loop compiled. */
    private static final int ROUNDS = 20;

    private TimerCost() {
    }

    /** The median of many pairs of clock readings, in seconds. */
    static double measureSeconds() {
        long[] nanoseconds = new long[PAIRS];
        for (int round = 0; round < ROUNDS; round++) {
            readPairs(nanoseconds);
        }
        Arrays.sort(nanoseconds);
        return nanoseconds[PAIRS / 2] / 1e9;
    }

    private static void readPairs(long[] nanoseconds) {
        for (int i = 0; i < nanoseconds.length; i++) {
            long begin = System.nanoTime();
            nanoseconds[i] = System.nanoTime() - begin;
        }
    }
}
