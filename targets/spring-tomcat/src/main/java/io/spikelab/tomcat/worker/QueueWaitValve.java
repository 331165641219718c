package io.spikelab.tomcat.worker;

import jakarta.servlet.ServletException;
import java.io.IOException;
import org.apache.catalina.connector.Request;
import org.apache.catalina.connector.Response;
import org.apache.catalina.valves.ValveBase;

/**
 * Observes the queue wait once for each request that reaches a servlet.
 *
 * <p>It sits right before the servlet's filters, where Spring's own request timer is, so that both count the
 * same requests: what Tomcat refuses by itself, such as a malformed request line, reaches neither.
 */
final class QueueWaitValve extends ValveBase {

    private final WorkerQueue queue;

    QueueWaitValve(WorkerQueue queue) {
        super(true);
        this.queue = queue;
    }

    @Override
    public void invoke(Request request, Response response) throws IOException, ServletException {
        if (!request.isAsyncDispatching()) {
            queue.requestBegins();
        }
        getNext().invoke(request, response);
    }
}
