package io.spikelab.tomcat.metrics;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.spikelab.tomcat.worker.RequestTimes;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.http.HttpMethod;
import org.springframework.http.HttpStatus;
import org.springframework.stereotype.Component;

/**
 * Spring Boot's timer of requests, {@code http.server.requests}, under its name and with its labels.
 *
 * <p>Boot's own goes through its observations, which look the timer up by its labels each time: a tenth of what a
 * worker does for a small request. Here the timer of each outcome is remembered.
 */
@Component
final class RequestMetrics implements RequestTimes {

    private static final String NONE = "none";
    private static final String UNKNOWN = "UNKNOWN";

    private final ObjectProvider<MeterRegistry> registry;
    private final Map<Outcome, Timer> timers = new ConcurrentHashMap<>();

    /** @param registry not asked for before the first request: it needs the server, and the server this */
    RequestMetrics(ObjectProvider<MeterRegistry> registry) {
        this.registry = registry;
    }

    @Override
    public void observe(Outcome outcome, long nanoseconds) {
        Timer timer = timers.get(outcome);
        if (timer == null) {
            timer = timerOf(outcome);
            if (isOfFewMethods(outcome)) {
                timers.put(outcome, timer);
            }
        }
        timer.record(nanoseconds, TimeUnit.NANOSECONDS);
    }

    private Timer timerOf(Outcome outcome) {
        String error = outcome.error() == null ? NONE : outcome.error().getSimpleName();
        return Timer.builder("http.server.requests")
                .tag("method", isOfFewMethods(outcome) ? outcome.method() : UNKNOWN)
                .tag("uri", pathOf(outcome)).tag("status", String.valueOf(outcome.status()))
                .tag("outcome", seriesOf(outcome.status())).tag("exception", error).tag("error", error)
                .register(registry.getObject());
    }

    /** A client can send any word for a method: a series each would be its way to fill the memory. */
    private static boolean isOfFewMethods(Outcome outcome) {
        for (HttpMethod method : HttpMethod.values()) {
            if (method.name().equals(outcome.method())) {
                return true;
            }
        }
        return false;
    }

    private static String pathOf(Outcome outcome) {
        if (outcome.path() != null) {
            return outcome.path();
        }
        return outcome.status() == HttpStatus.NOT_FOUND.value() ? "NOT_FOUND" : UNKNOWN;
    }

    private static String seriesOf(int status) {
        HttpStatus.Series series = HttpStatus.Series.resolve(status);
        if (series == null) {
            return UNKNOWN;
        }
        return series == HttpStatus.Series.SUCCESSFUL ? "SUCCESS" : series.name();
    }
}
