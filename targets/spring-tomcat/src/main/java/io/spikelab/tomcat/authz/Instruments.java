package io.spikelab.tomcat.authz;

import io.prometheus.metrics.core.metrics.Counter;
import io.prometheus.metrics.core.metrics.GaugeWithCallback;
import io.prometheus.metrics.core.metrics.Histogram;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.function.DoubleSupplier;

/** How the metrics of authorization are made. Without exemplars: looking one up failed inside the worker. */
final class Instruments {

    /** 32 buckets for each doubling, so a bucket is 2.2 % wide. */
    private static final int NATIVE_SCHEMA = 5;
    /** Ends of the classic buckets within each power of ten. */
    private static final double[] STEPS = {1, 1.5, 2, 3, 5, 7};
    /** 10 seconds. */
    private static final int LONGEST_POWER = 1;

    private Instruments() {
    }

    static void gauge(PrometheusRegistry registry, String name, String help, DoubleSupplier value) {
        GaugeWithCallback.builder().name(name).help(help).callback(gauge -> gauge.call(value.getAsDouble()))
                .register(registry);
    }

    static Counter counter(PrometheusRegistry registry, String name, String help, String... labels) {
        return Counter.builder().name(name).help(help).labelNames(labels).withoutExemplars().register(registry);
    }

    /** Native and classic, its classic buckets from a power of ten of a second on. */
    static Histogram histogram(PrometheusRegistry registry, String name, int lowestPower, String help) {
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
