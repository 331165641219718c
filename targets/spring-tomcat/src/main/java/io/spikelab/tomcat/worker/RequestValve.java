package io.spikelab.tomcat.worker;

import io.spikelab.tomcat.worker.RequestTimes.Outcome;
import jakarta.servlet.RequestDispatcher;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.MappingMatch;
import java.io.IOException;
import org.apache.catalina.connector.Request;
import org.apache.catalina.connector.Response;
import org.apache.catalina.valves.ValveBase;
import org.springframework.web.servlet.HandlerMapping;

/**
 * Observes the queue wait and the time of each request that reaches a servlet.
 *
 * <p>It sits right before the servlet's filters: what Tomcat refuses by itself, such as a malformed request line,
 * does not come here.
 */
final class RequestValve extends ValveBase {

    private final WorkerQueue queue;
    private final RequestTimes times;
    private final SafeInstrument instrument = new SafeInstrument("request times");

    RequestValve(WorkerQueue queue, RequestTimes times) {
        super(true);
        this.queue = queue;
        this.times = times;
    }

    @Override
    public void invoke(Request request, Response response) throws IOException, ServletException {
        if (request.isAsyncDispatching()) {
            getNext().invoke(request, response);
            return;
        }
        queue.requestBegins();
        long begin = System.nanoTime();
        try {
            getNext().invoke(request, response);
        } finally {
            long nanoseconds = System.nanoTime() - begin;
            instrument.observe(() -> times.observe(outcome(request, response), nanoseconds));
        }
    }

    private static Outcome outcome(Request request, Response response) {
        Object error = request.getAttribute(RequestDispatcher.ERROR_EXCEPTION);
        return new Outcome(request.getMethod(), path(request), response.getStatus(),
                error instanceof Throwable thrown ? thrown.getClass() : null);
    }

    /** A servlet of one path is its own handler; Spring's, which is for all others, names the pattern of one of its. */
    private static String path(Request request) {
        return request.getMappingData().matchType == MappingMatch.EXACT ? request.getServletPath()
                : (String) request.getAttribute(HandlerMapping.BEST_MATCHING_PATTERN_ATTRIBUTE);
    }
}
