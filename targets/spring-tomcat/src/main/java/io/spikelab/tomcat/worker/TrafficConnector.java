package io.spikelab.tomcat.worker;

import java.util.Optional;
import org.apache.catalina.Container;
import org.apache.catalina.ContainerEvent;
import org.apache.catalina.Context;
import org.apache.catalina.Wrapper;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.core.StandardContext;
import org.apache.coyote.http11.AbstractHttp11Protocol;
import org.apache.tomcat.util.threads.VirtualThreadExecutor;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.boot.tomcat.servlet.TomcatServletWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;
import org.springframework.stereotype.Component;

/**
 * The connector that load arrives at, with an instrumented worker pool in place of Tomcat's.
 *
 * <p>Ordered last, to find every property applied and to take the pool's size from Tomcat itself.
 */
@Component
@Order(Ordered.LOWEST_PRECEDENCE)
public final class TrafficConnector
        implements WebServerFactoryCustomizer<TomcatServletWebServerFactory>, DisposableBean {

    /** A stop waits this long for a servlet in use after the graceful period is over. */
    private static final long UNLOAD_MILLIS = 200;

    private final WorkerQueue queue;
    private final RequestTimes times;
    private volatile Running running;

    /**
     * @param protocol Tomcat's connector, which holds the settings in effect
     * @param workers its pool, which holds those of the threads
     */
    public record Running(AbstractHttp11Protocol<?> protocol, WorkerPool workers) {

        /** Whether requests run on virtual threads. */
        public boolean isVirtual() {
            return workers instanceof VirtualThreads;
        }
    }

    TrafficConnector(WorkerQueue queue, RequestTimes times) {
        this.queue = queue;
        this.times = times;
    }

    /** Empty until the server is being started. */
    public Optional<Running> running() {
        return Optional.ofNullable(running);
    }

    @Override
    public void customize(TomcatServletWebServerFactory factory) {
        factory.setProtocol(TrafficProtocol.class.getName());
        factory.addConnectorCustomizers(this::replacePool);
        factory.addContextCustomizers(this::addValves);
    }

    /** Interrupts sleeping requests and drops queued ones, so that they do not hold up a stop. */
    @Override
    public void destroy() {
        running().ifPresent(connector -> connector.workers().stop());
    }

    private void replacePool(Connector connector) {
        AbstractHttp11Protocol<?> protocol = (AbstractHttp11Protocol<?>) connector.getProtocolHandler();
        WorkerPool workers = protocol.getExecutor() instanceof VirtualThreadExecutor threads
                ? new VirtualThreads(queue, threads)
                : new PlatformThreads(queue, "worker-", protocol.getMinSpareThreads(), protocol.getMaxThreads(),
                        protocol.getMaxQueueSize());
        protocol.setExecutor(workers);
        running = new Running(protocol, workers);
    }

    private void addValves(Context context) {
        ((StandardContext) context).setUnloadDelay(UNLOAD_MILLIS);
        context.addContainerListener(this::addValve);
    }

    private void addValve(ContainerEvent event) {
        if (Container.ADD_CHILD_EVENT.equals(event.getType()) && event.getData() instanceof Wrapper servlet) {
            servlet.getPipeline().addValve(new RequestValve(queue, times));
        }
    }
}
