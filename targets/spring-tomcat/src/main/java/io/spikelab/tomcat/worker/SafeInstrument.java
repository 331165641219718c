package io.spikelab.tomcat.worker;

import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** An instrument whose error does not become the client's: its first one is logged. */
final class SafeInstrument {

    private static final Logger LOG = LoggerFactory.getLogger(SafeInstrument.class);

    private final String records;
    private final AtomicBoolean failureReported = new AtomicBoolean();

    /** @param records what it records, for the log */
    SafeInstrument(String records) {
        this.records = records;
    }

    void observe(Runnable observation) {
        try {
            observation.run();
        } catch (Throwable failure) {
            if (failureReported.compareAndSet(false, true)) {
                LOG.warn("{} are not recorded: {}", records, failure.toString());
            }
        }
    }
}
