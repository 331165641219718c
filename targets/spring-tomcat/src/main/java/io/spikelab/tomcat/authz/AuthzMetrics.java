package io.spikelab.tomcat.authz;

import io.prometheus.metrics.core.datapoints.CounterDataPoint;
import io.prometheus.metrics.core.metrics.Counter;
import io.prometheus.metrics.core.metrics.CounterWithCallback;
import io.prometheus.metrics.core.metrics.Histogram;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.function.DoubleSupplier;

/** Counts and times of authorization, every series there from the start. */
final class AuthzMetrics {

    /** What became of a revocation, as its value of the label {@code result}. */
    enum Revocation {
        ACCEPTED, INVALID_TOKEN, BLACKLIST_FULL, BLACKLIST_UNAVAILABLE
    }

    private final CounterDataPoint allowed;
    private final Map<Refusal, CounterDataPoint> refused = new EnumMap<>(Refusal.class);
    private final Map<Revocation, CounterDataPoint> revocations = new EnumMap<>(Revocation.class);
    private final Histogram requestSeconds;
    private final Histogram verifySeconds;

    AuthzMetrics(PrometheusRegistry registry, LocalBlacklist blacklist, DoubleSupplier timerCostSeconds) {
        Counter requests = Instruments.counter(registry, "ext_authz_requests", "Tokens checked", "decision", "reason");
        allowed = requests.labelValues("allow", "valid");
        for (Refusal refusal : Refusal.values()) {
            refused.put(refusal, requests.labelValues("deny", refusal.label()));
        }
        Counter revoked = Instruments.counter(registry, "ext_authz_revocations", "Revocations asked for", "result");
        for (Revocation revocation : Revocation.values()) {
            revocations.put(revocation, revoked.labelValues(revocation.name().toLowerCase(Locale.ROOT)));
        }
        requestSeconds = Instruments.histogram(registry, "ext_authz_request_duration_seconds", -5,
                "Time to decide on a request, verification and look-up included");
        verifySeconds = Instruments.histogram(registry, "ext_authz_jwt_verify_duration_seconds", -5,
                "Time to parse a token and verify its signature and claims");
        stateOf(registry, blacklist, timerCostSeconds);
    }

    void countAllowed() {
        allowed.inc();
    }

    void countRefused(Refusal refusal) {
        refused.get(refusal).inc();
    }

    void countRevocation(Revocation revocation) {
        revocations.get(revocation).inc();
    }

    void observeRequest(long nanoseconds) {
        requestSeconds.observe(nanoseconds / 1e9);
    }

    void observeVerification(long nanoseconds) {
        verifySeconds.observe(nanoseconds / 1e9);
    }

    private static void stateOf(PrometheusRegistry registry, LocalBlacklist blacklist, DoubleSupplier timerCost) {
        CounterWithCallback.builder().name("ext_authz_blacklist_cache_evictions").labelNames("cause")
                .help("Entries dropped; the only cause is that the token has expired")
                .callback(counter -> counter.call(blacklist.expired(), "expired")).register(registry);
        Instruments.gauge(registry, "ext_authz_blacklist_cache_size", "Revoked tokens that have not expired",
                blacklist::size);
        Instruments.gauge(registry, "ext_authz_blacklist_full",
                "1 while no token is accepted because a revocation was refused for want of room, else 0",
                () -> blacklist.isIncomplete() ? 1 : 0);
        Instruments.gauge(registry, "ext_authz_timer_cost_seconds",
                "What a timer reads when there is nothing to time, median", timerCost);
    }
}
