package io.spikelab.tomcat.authz;

import io.prometheus.metrics.core.metrics.Counter;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.util.function.BooleanSupplier;
import java.util.function.IntSupplier;

/** What came from the stream of revocations, and how its connection is; there only where a stream is followed. */
final class BrokerMetrics {

    private static final String PREFIX = "ext_authz_blacklist_broker_";

    private final PrometheusRegistry registry;
    private final Counter received;
    private final Counter failed;
    private final Counter reconnects;

    BrokerMetrics(PrometheusRegistry registry) {
        this.registry = registry;
        received = Instruments.counter(registry, PREFIX + "received",
                "Revocations that came from the stream, those made here included");
        failed = Instruments.counter(registry, PREFIX + "failed",
                "Entries of the stream that were no revocation, or for which there was no room");
        reconnects = Instruments.counter(registry, PREFIX + "reconnects",
                "Connections to the stream made again after one was lost");
    }

    void stateOf(BooleanSupplier connected, IntSupplier pending) {
        Instruments.gauge(registry, PREFIX + "connected", "1 while the stream is followed, else 0",
                () -> connected.getAsBoolean() ? 1 : 0);
        Instruments.gauge(registry, PREFIX + "pending", "Revocations made here that are not published yet",
                pending::getAsInt);
    }

    void countEntry(boolean applied) {
        (applied ? received : failed).inc();
    }

    void countReconnect() {
        reconnects.inc();
    }
}
