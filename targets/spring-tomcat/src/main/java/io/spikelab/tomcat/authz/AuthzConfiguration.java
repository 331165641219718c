package io.spikelab.tomcat.authz;

import io.prometheus.metrics.model.registry.PrometheusRegistry;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.ApplicationListener;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.util.function.SingletonSupplier;

/** The parts of authorization, put together. */
@Configuration(proxyBeanMethods = false)
class AuthzConfiguration {

    private static final Logger LOG = LoggerFactory.getLogger(AuthzConfiguration.class);

    private final SingletonSupplier<Double> timerCostSeconds = SingletonSupplier.of(TimerCost::measureSeconds);

    @Bean
    TokenClock tokenClock() {
        return new TokenClock(System::currentTimeMillis);
    }

    @Bean
    Tokens tokens(TokenKeys keys, TokenClock clock) {
        return new Tokens(keys, clock);
    }

    @Bean
    Authorizer authorizer(Tokens tokens, Blacklist blacklist, LocalBlacklist local, PrometheusRegistry registry) {
        LookupMetrics cache = LookupMetrics.ofCache(registry);
        LookupMetrics redis = LookupMetrics.ofRedis(registry);
        return new Authorizer(tokens, blacklist, blacklist instanceof RedisBlacklist ? redis : cache,
                new AuthzMetrics(registry, local, timerCostSeconds::obtain));
    }

    @Bean
    ServletRegistrationBean<PingServlet> ping(Authorizer authorizer) {
        return new ServletRegistrationBean<>(new PingServlet(authorizer), PingServlet.PATH);
    }

    /** What the start does not wait for, so that the first request does not either. */
    @Bean
    ApplicationListener<ApplicationReadyEvent> authzPreparation(Tokens tokens) {
        return ready -> {
            if (tokens.areOfThisRunOnly()) {
                LOG.info("neither {} nor {} is set: tokens are signed with a key made for this run",
                        TokenKeys.PRIVATE, TokenKeys.PUBLIC);
            }
            Thread preparation = new Thread(() -> prepare(tokens), "authz-preparation");
            preparation.setDaemon(true);
            preparation.start();
        };
    }

    private void prepare(Tokens tokens) {
        timerCostSeconds.obtain();
        TokenVerifier verifier = tokens.verifier();
        if (tokens.canMint()) {
            try {
                verifier.verify(tokens.issuer().mint("preparation", 1));
            } catch (RefusedException late) {
                LOG.debug("the preparation took longer than its token was valid");
            }
        }
    }
}
