package io.spikelab.tomcat.authz;

import io.prometheus.metrics.core.datapoints.CounterDataPoint;
import io.prometheus.metrics.core.metrics.Histogram;
import io.prometheus.metrics.model.registry.PrometheusRegistry;

/** Counts and times of the look-ups in one place. */
final class LookupMetrics {

    private final CounterDataPoint hits;
    private final CounterDataPoint misses;
    private final Histogram seconds;

    private LookupMetrics(PrometheusRegistry registry, String prefix, int lowestPower, String place) {
        hits = Instruments.counter(registry, prefix + "_hits", "Look-ups " + place + " that found the token revoked")
                .labelValues();
        misses = Instruments.counter(registry, prefix + "_misses", "Look-ups " + place + " that did not find the token")
                .labelValues();
        seconds = Instruments.histogram(registry, prefix + "_lookup_duration_seconds", lowestPower,
                "Time to look a token up " + place + ", ext_authz_timer_cost_seconds included");
    }

    /** The blacklist in memory, whose look-ups take less than a microsecond. */
    static LookupMetrics ofCache(PrometheusRegistry registry) {
        return new LookupMetrics(registry, "ext_authz_blacklist_cache", -8, "in memory");
    }

    static LookupMetrics ofRedis(PrometheusRegistry registry) {
        return new LookupMetrics(registry, "ext_authz_blacklist_redis", -6, "in Redis");
    }

    void count(boolean hit) {
        (hit ? hits : misses).inc();
    }

    /** For a look-up without an answer too. */
    void observe(long nanoseconds) {
        seconds.observe(nanoseconds / 1e9);
    }
}
