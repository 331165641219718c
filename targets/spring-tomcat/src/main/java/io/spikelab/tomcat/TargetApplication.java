package io.spikelab.tomcat;

import io.spikelab.tomcat.authz.RedisAddress;
import io.spikelab.tomcat.authz.TokenKeys;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.event.EventListener;
import org.springframework.core.env.MapPropertySource;
import org.springframework.web.filter.RequestContextFilter;

/** The target as a Spring application; {@link Main} is its command. */
@SpringBootApplication(proxyBeanMethods = false)
public class TargetApplication {

    private static final Logger LOG = LoggerFactory.getLogger(TargetApplication.class);

    /**
     * Starts the target.
     *
     * @param environment variables that hold its settings
     * @param initializers applied to the context before it starts
     * @throws InvalidValueException where the target cannot start with these settings
     */
    @SafeVarargs
    static ConfigurableApplicationContext start(Map<String, String> environment,
            ApplicationContextInitializer<ConfigurableApplicationContext>... initializers) {
        Map<String, Object> properties = new LinkedHashMap<>();
        properties.putAll(new SettingValues(TargetDescription.load(), environment,
                Runtime.version().feature()).properties());
        properties.putAll(Addresses.properties(environment));
        TokenKeys keys = TokenKeys.from(environment);
        Optional<RedisAddress> redis = RedisAddress.from(environment,
                (String) properties.get("target.authz-blacklist"));
        SpringApplication application = new SpringApplication(TargetApplication.class);
        application.addInitializers(context -> context.getEnvironment().getPropertySources()
                .addFirst(new MapPropertySource("target.yml", properties)));
        application.addInitializers(context -> context.getBeanFactory().registerSingleton("tokenKeys", keys));
        redis.ifPresent(address -> application.addInitializers(
                context -> context.getBeanFactory().registerSingleton("redisAddress", address)));
        application.addInitializers(initializers);
        return application.run();
    }

    @Bean
    TargetDescription targetDescription() {
        return TargetDescription.load();
    }

    /** Left out: Spring's servlet does for its handlers what this filter would do for other servlets. */
    @Bean
    FilterRegistrationBean<RequestContextFilter> withoutRequestContext() {
        FilterRegistrationBean<RequestContextFilter> filter =
                new FilterRegistrationBean<>(new RequestContextFilter());
        filter.setEnabled(false);
        return filter;
    }

    @EventListener
    void announce(ApplicationReadyEvent ready) {
        var environment = ready.getApplicationContext().getEnvironment();
        LOG.info("spring-tomcat listens on {} port {}, management port {}, started in {} ms",
                environment.getProperty("server.address"), environment.getProperty("local.server.port"),
                environment.getProperty("local.management.port"), ready.getTimeTaken().toMillis());
    }
}
