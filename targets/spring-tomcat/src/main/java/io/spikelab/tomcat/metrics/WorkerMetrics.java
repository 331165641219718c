package io.spikelab.tomcat.metrics;

import io.micrometer.core.instrument.config.MeterFilter;
import io.prometheus.metrics.core.metrics.GaugeWithCallback;
import io.prometheus.metrics.core.metrics.Histogram;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import io.spikelab.tomcat.worker.TrafficConnector;
import io.spikelab.tomcat.worker.WorkerPool;
import io.spikelab.tomcat.worker.WorkerQueue;
import java.util.function.DoubleConsumer;
import java.util.function.ToDoubleFunction;
import org.springframework.beans.factory.InitializingBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** The worker pool and its queue as metrics. */
@Configuration(proxyBeanMethods = false)
class WorkerMetrics {

    /** 32 buckets for each doubling, so a bucket is 2.2 % wide. */
    private static final int NATIVE_SCHEMA = 5;
    /** Shorter waits are all "no wait"; it bounds the number of buckets. */
    private static final double ZERO_SECONDS = 1e-5;
    private static final double[] CLASSIC_SECONDS = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
            1, 2.5, 5, 7.5, 10, 15, 20, 25, 30, 45, 60, 90, 120, 180, 300};

    /** Without exemplars: looking one up failed inside the worker. */
    @Bean
    DoubleConsumer queueWaitSeconds(PrometheusRegistry registry) {
        Histogram histogram = Histogram.builder().name("tomcat_worker_queue_wait_seconds")
                .help("Time a request waited for a worker thread, once per request")
                .nativeInitialSchema(NATIVE_SCHEMA).nativeMaxNumberOfBuckets(0)
                .nativeMinZeroThreshold(ZERO_SECONDS).nativeMaxZeroThreshold(ZERO_SECONDS)
                .classicUpperBounds(CLASSIC_SECONDS).withoutExemplars().register(registry);
        return histogram::observe;
    }

    @Bean
    WorkerQueue workerQueue(DoubleConsumer queueWaitSeconds) {
        return new WorkerQueue(queueWaitSeconds);
    }

    /** Tomcat knows nothing of a pool that is not its own and reports -1; ours replace these. */
    @Bean
    MeterFilter withoutTomcatThreads() {
        return MeterFilter.denyNameStartsWith("tomcat.threads");
    }

    @Bean
    InitializingBean workerGauges(PrometheusRegistry registry, WorkerQueue queue, TrafficConnector connector) {
        return () -> {
            GaugeWithCallback.builder().name("tomcat_worker_queue_depth")
                    .help("Requests that wait for a worker thread, without connections that only wait to be closed")
                    .callback(gauge -> gauge.call(queue.requestsWaiting())).register(registry);
            threads(registry, connector, "busy", "Worker threads that work on a request", WorkerPool::busyThreads);
            threads(registry, connector, "current", "Worker threads that exist", WorkerPool::currentThreads);
            threads(registry, connector, "config_max", "Most worker threads there can be, +Inf with virtual threads",
                    WorkerPool::maximumThreads);
        };
    }

    private static void threads(PrometheusRegistry registry, TrafficConnector connector, String kind, String help,
            ToDoubleFunction<WorkerPool> value) {
        GaugeWithCallback.builder().name("tomcat_threads_" + kind + "_threads").help(help).labelNames("name")
                .callback(gauge -> connector.running().ifPresent(running -> gauge.call(
                        value.applyAsDouble(running.workers()), running.protocol().getName().replace("\"", ""))))
                .register(registry);
    }
}
