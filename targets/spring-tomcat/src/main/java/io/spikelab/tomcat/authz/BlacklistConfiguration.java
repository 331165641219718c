package io.spikelab.tomcat.authz;

import io.prometheus.metrics.model.registry.PrometheusRegistry;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.ApplicationRunner;
import org.springframework.boot.SpringApplication.AbandonedRunException;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Primary;

/** The blacklist in use, by AUTHZ_BLACKLIST and AUTHZ_REDIS_URL. */
@Configuration(proxyBeanMethods = false)
class BlacklistConfiguration {

    /** The choice of AUTHZ_BLACKLIST that asks Redis for each token. */
    static final String REDIS = "redis";
    /** A look-up holds a connection for a fraction of a millisecond: few serve many workers. */
    private static final int MOST_CONNECTIONS = 64;

    @Bean
    LocalBlacklist localBlacklist(@Value("${target.authz-blacklist-max-entries}") int maximumEntries,
            TokenClock clock) {
        return new LocalBlacklist(maximumEntries, clock);
    }

    /** Which it is was checked at the start: only one of them works without Redis. */
    @Bean
    @Primary
    Blacklist blacklist(@Value("${target.authz-blacklist}") String place,
            @Value("${server.tomcat.threads.max}") int workers,
            @Value("${spring.threads.virtual.enabled}") boolean unlimited, LocalBlacklist local,
            ObjectProvider<RedisAddress> redis, TokenClock clock, PrometheusRegistry registry) {
        RedisAddress address = redis.getIfAvailable();
        if (place.equals(REDIS)) {
            return new RedisBlacklist(address, unlimited ? MOST_CONNECTIONS : Math.min(workers, MOST_CONNECTIONS),
                    clock);
        }
        return address == null ? local : new SharedBlacklist(local, address, clock, new BrokerMetrics(registry));
    }

    /** Runners come after the listeners are open and before readiness, so liveness and metrics answer meanwhile. */
    @Bean
    ApplicationRunner blacklistPreparation(Blacklist blacklist) {
        return arguments -> {
            try {
                blacklist.prepare();
            } catch (InterruptedException closed) {
                throw new AbandonedRunException();
            }
        };
    }
}
