package io.spikelab.tomcat.metrics;

import io.prometheus.metrics.core.metrics.GaugeWithCallback;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import io.spikelab.tomcat.Setting;
import io.spikelab.tomcat.TargetDescription;
import io.spikelab.tomcat.worker.TrafficConnector;
import java.util.LinkedHashMap;
import java.util.Map;
import org.springframework.beans.factory.InitializingBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.Environment;

/**
 * {@code tomcat_setting}: each declared setting as the running connector has it; one that the connector does not have
 * is shown as Spring was given it.
 */
@Configuration(proxyBeanMethods = false)
class SettingMetrics {

    @Bean
    InitializingBean settingGauges(PrometheusRegistry registry, TrafficConnector connector,
            TargetDescription description, Environment environment) {
        Map<String, Double> given = new LinkedHashMap<>();
        for (Setting setting : description.settings().values()) {
            given.put(setting.name(), setting.exported(environment.getRequiredProperty(setting.property())));
        }
        return () -> GaugeWithCallback.builder().name("tomcat_setting")
                .help("Setting in effect, in its own unit; a boolean is 0 or 1, a choice its place from 0, "
                        + "unlimited is +Inf")
                .labelNames("name")
                .callback(gauge -> connector.running().ifPresent(running -> {
                    Map<String, Double> effective = effective(running);
                    given.forEach((name, value) -> gauge.call(effective.getOrDefault(name, value), name));
                })).register(registry);
    }

    private static Map<String, Double> effective(TrafficConnector.Running running) {
        var protocol = running.protocol();
        var workers = running.workers();
        Map<String, Double> values = new LinkedHashMap<>();
        values.put("TOMCAT_MAX_THREADS", workers.maximumThreads());
        values.put("TOMCAT_MIN_SPARE_THREADS", workers.spareThreads());
        values.put("TOMCAT_MAX_QUEUE_CAPACITY", workers.queueCapacity());
        values.put("TOMCAT_MAX_CONNECTIONS", limit(protocol.getMaxConnections()));
        values.put("TOMCAT_ACCEPT_COUNT", (double) protocol.getAcceptCount());
        values.put("TOMCAT_CONNECTION_TIMEOUT", limit(protocol.getConnectionTimeout()));
        values.put("TOMCAT_KEEP_ALIVE_TIMEOUT", limit(protocol.getKeepAliveTimeout()));
        values.put("TOMCAT_MAX_KEEP_ALIVE_REQUESTS", limit(protocol.getMaxKeepAliveRequests()));
        values.put("TOMCAT_VIRTUAL_THREADS", running.isVirtual() ? 1.0 : 0.0);
        return values;
    }

    /** Tomcat writes "unlimited" as -1. */
    private static double limit(int value) {
        return value < 0 ? Double.POSITIVE_INFINITY : value;
    }
}
