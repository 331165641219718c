package io.spikelab.tomcat.metrics;

import io.prometheus.metrics.core.metrics.CounterWithCallback;
import io.prometheus.metrics.core.metrics.GaugeWithCallback;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.util.OptionalDouble;
import java.util.function.Supplier;
import org.springframework.beans.factory.InitializingBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** CPU throttling of this process's control group; a series is absent where the kernel gives no figure. */
@Configuration(proxyBeanMethods = false)
class CgroupMetrics {

    @Bean
    InitializingBean cgroupMeters(PrometheusRegistry registry) {
        Cgroup cgroup = Cgroup.ofThisProcess();
        return () -> {
            counter(registry, "cgroup_cpu_periods", "CPU limit periods that have passed", cgroup::periods);
            counter(registry, "cgroup_cpu_throttled_periods", "CPU limit periods in which the group was stopped",
                    cgroup::throttledPeriods);
            counter(registry, "cgroup_cpu_throttled_seconds", "Time the group was stopped by its CPU limit",
                    cgroup::throttledSeconds);
            GaugeWithCallback.builder().name("cgroup_cpu_quota_cores")
                    .help("CPU limit of the group in cores, +Inf without one")
                    .callback(gauge -> gauge.call(cgroup.quotaCores())).register(registry);
        };
    }

    private static void counter(PrometheusRegistry registry, String name, String help,
            Supplier<OptionalDouble> value) {
        CounterWithCallback.builder().name(name).help(help)
                .callback(counter -> value.get().ifPresent(counter::call)).register(registry);
    }
}
