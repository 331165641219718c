package io.spikelab.management;

import org.apache.coyote.http11.AbstractHttp11Protocol;
import org.springframework.boot.actuate.autoconfigure.web.ManagementContextConfiguration;
import org.springframework.boot.actuate.autoconfigure.web.ManagementContextType;
import org.springframework.boot.tomcat.servlet.TomcatServletWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.core.annotation.Order;
import org.springframework.core.Ordered;

/**
 * Settings of the management connector, whatever the traffic connector's are.
 *
 * <p>{@code server.tomcat.*} shapes both connectors, so health would starve with the traffic it reports on.
 * The class is outside the scanned package because only the management context may read it, and its
 * connector customizer comes last because one of Boot's applies those properties.
 */
@ManagementContextConfiguration(value = ManagementContextType.CHILD, proxyBeanMethods = false)
public class ManagementConnectorConfiguration {

    static final int THREADS = 4;
    static final int CONNECTIONS = 100;
    private static final int TIMEOUT_MILLIS = 20_000;

    @Bean
    @Order(Ordered.LOWEST_PRECEDENCE)
    WebServerFactoryCustomizer<TomcatServletWebServerFactory> managementConnector() {
        return factory -> factory.addConnectorCustomizers(
                connector -> configure((AbstractHttp11Protocol<?>) connector.getProtocolHandler()));
    }

    private static void configure(AbstractHttp11Protocol<?> protocol) {
        // Null brings back a pool of its own where Boot has set virtual threads.
        protocol.setExecutor(null);
        protocol.setMinSpareThreads(1);
        protocol.setMaxThreads(THREADS);
        protocol.setMaxQueueSize(CONNECTIONS);
        protocol.setMaxConnections(CONNECTIONS);
        protocol.setAcceptCount(CONNECTIONS);
        protocol.setConnectionTimeout(TIMEOUT_MILLIS);
        protocol.setKeepAliveTimeout(TIMEOUT_MILLIS);
        protocol.setMaxKeepAliveRequests(-1);
    }
}
