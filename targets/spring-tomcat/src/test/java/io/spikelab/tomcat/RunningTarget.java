package io.spikelab.tomcat;

import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.util.HashMap;
import java.util.Map;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.ConfigurableApplicationContext;

/** The target in this process, on free ports. */
final class RunningTarget extends TargetClient {

    private final ConfigurableApplicationContext context;

    @SafeVarargs
    private RunningTarget(Map<String, String> settings,
            ApplicationContextInitializer<ConfigurableApplicationContext>... initializers) {
        Map<String, String> environment = new HashMap<>(settings);
        environment.put("TARGET_PORT", "0");
        environment.put("TARGET_MANAGEMENT_PORT", "0");
        this.context = TargetApplication.start(environment, initializers);
    }

    /** Starts with settings given as name, value, name, value. */
    static RunningTarget with(String... namesAndValues) {
        return new RunningTarget(settings(namesAndValues));
    }

    @SafeVarargs
    static RunningTarget changed(Map<String, String> settings,
            ApplicationContextInitializer<ConfigurableApplicationContext>... initializers) {
        return new RunningTarget(settings, initializers);
    }

    static Map<String, String> settings(String... namesAndValues) {
        Map<String, String> settings = new HashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            settings.put(namesAndValues[i], namesAndValues[i + 1]);
        }
        return settings;
    }

    @Override
    int port() {
        return Integer.parseInt(context.getEnvironment().getProperty("local.server.port"));
    }

    @Override
    int managementPort() {
        return Integer.parseInt(context.getEnvironment().getProperty("local.management.port"));
    }

    PrometheusRegistry registry() {
        return context.getBean(PrometheusRegistry.class);
    }

    @Override
    public void close() {
        context.close();
    }
}
