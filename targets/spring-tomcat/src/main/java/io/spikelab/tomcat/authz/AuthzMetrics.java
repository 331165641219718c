package io.spikelab.tomcat.authz;

import io.prometheus.metrics.core.datapoints.CounterDataPoint;
import io.prometheus.metrics.core.metrics.Counter;
import io.prometheus.metrics.core.metrics.CounterWithCallback;
import io.prometheus.metrics.core.metrics.GaugeWithCallback;
import io.prometheus.metrics.core.metrics.Histogram;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.DoubleSupplier;

/**
 * Counts and times of authorization, every series there from the start.
 *
 * <p>Without exemplars: looking one up failed inside the worker.
 */
final class AuthzMetrics {

    /** 32 buckets for each doubling, so a bucket is 2.2 % wide. */
    private static final int NATIVE_SCHEMA = 5;
    /** Ends of the classic buckets within each power of ten. */
    private static final double[] STEPS = {1, 1.5, 2, 3, 5, 7};
    /** 10 seconds. */
    private static final int LONGEST_POWER = 1;

    /** What became of a revocation, as its value of the label {@code result}. */
    enum Revocation {
        ACCEPTED, INVALID_TOKEN, BLACKLIST_FULL
    }

    private final CounterDataPoint allowed;
    private final Map<Refusal, CounterDataPoint> refused = new EnumMap<>(Refusal.class);
    private final Map<Revocation, CounterDataPoint> revocations = new EnumMap<>(Revocation.class);
    private final CounterDataPoint hits;
    private final CounterDataPoint misses;
    private final Histogram requestSeconds;
    private final Histogram verifySeconds;
    private final Histogram lookupSeconds;

    AuthzMetrics(PrometheusRegistry registry, LocalBlacklist blacklist, DoubleSupplier timerCostSeconds) {
        Counter requests = counter(registry, "ext_authz_requests", "Tokens checked", "decision", "reason");
        allowed = requests.labelValues("allow", "valid");
        for (Refusal refusal : Refusal.values()) {
            refused.put(refusal, requests.labelValues("deny", refusal.label()));
        }
        Counter revoked = counter(registry, "ext_authz_revocations", "Revocations asked for", "result");
        for (Revocation revocation : Revocation.values()) {
            revocations.put(revocation, revoked.labelValues(revocation.name().toLowerCase(Locale.ROOT)));
        }
        hits = counter(registry, "ext_authz_blacklist_cache_hits", "Look-ups that found the token revoked")
                .labelValues();
        misses = counter(registry, "ext_authz_blacklist_cache_misses", "Look-ups that did not find the token")
                .labelValues();
        requestSeconds = histogram(registry, "ext_authz_request_duration_seconds", -5,
                "Time to decide on a request, verification and look-up included");
        verifySeconds = histogram(registry, "ext_authz_jwt_verify_duration_seconds", -5,
                "Time to parse a token and verify its signature and claims");
        lookupSeconds = histogram(registry, "ext_authz_blacklist_cache_lookup_duration_seconds", -8,
                "Time to look a token up in the blacklist, ext_authz_timer_cost_seconds included");
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

    void observeLookup(long nanoseconds, boolean hit) {
        lookupSeconds.observe(nanoseconds / 1e9);
        (hit ? hits : misses).inc();
    }

    private static void stateOf(PrometheusRegistry registry, LocalBlacklist blacklist, DoubleSupplier timerCost) {
        CounterWithCallback.builder().name("ext_authz_blacklist_cache_evictions").labelNames("cause")
                .help("Entries dropped; the only cause is that the token has expired")
                .callback(counter -> counter.call(blacklist.expired(), "expired")).register(registry);
        gauge(registry, "ext_authz_blacklist_cache_size", "Revoked tokens that have not expired", blacklist::size);
        gauge(registry, "ext_authz_blacklist_full",
                "1 while no token is accepted because a revocation was refused for want of room, else 0",
                () -> blacklist.isIncomplete() ? 1 : 0);
        gauge(registry, "ext_authz_timer_cost_seconds", "What a timer reads when there is nothing to time, median",
                timerCost);
    }

    private static void gauge(PrometheusRegistry registry, String name, String help, DoubleSupplier value) {
        GaugeWithCallback.builder().name(name).help(help).callback(gauge -> gauge.call(value.getAsDouble()))
                .register(registry);
    }

    private static Counter counter(PrometheusRegistry registry, String name, String help, String... labels) {
        return Counter.builder().name(name).help(help).labelNames(labels).withoutExemplars().register(registry);
    }

    private static Histogram histogram(PrometheusRegistry registry, String name, int lowestPower, String help) {
        double zeroSeconds = Math.pow(10, lowestPower - 2);
        return Histogram.builder().name(name).help(help).nativeInitialSchema(NATIVE_SCHEMA).nativeMaxNumberOfBuckets(0)
                .nativeMinZeroThreshold(zeroSeconds).nativeMaxZeroThreshold(zeroSeconds)
                .classicUpperBounds(bounds(lowestPower)).withoutExemplars().register(registry);
    }

    /** Seconds, from a power of ten to the longest; in decimals, so that the label {@code le} is a round number. */
    private static double[] bounds(int lowestPower) {
        List<Double> bounds = new ArrayList<>();
        for (int power = lowestPower; power < LONGEST_POWER; power++) {
            for (double step : STEPS) {
                bounds.add(BigDecimal.valueOf(step).scaleByPowerOfTen(power).doubleValue());
            }
        }
        bounds.add(Math.pow(10, LONGEST_POWER));
        return bounds.stream().mapToDouble(Double::doubleValue).toArray();
    }
}
