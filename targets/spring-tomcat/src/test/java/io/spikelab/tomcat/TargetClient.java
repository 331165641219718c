package io.spikelab.tomcat;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.function.DoublePredicate;

/** Requests to a target wherever it runs, and what its metrics say. */
abstract class TargetClient implements AutoCloseable {

    private static final HttpClient CLIENT = HttpClient.newHttpClient();
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    abstract int port();

    abstract int managementPort();

    HttpResponse<String> get(String path) throws IOException, InterruptedException {
        return send(port(), HttpRequest.newBuilder(), path);
    }

    /** Sends a request without a body; headers as name, value, name, value. */
    HttpResponse<String> send(String method, String path, String... headers)
            throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder().method(method, HttpRequest.BodyPublishers.noBody());
        return send(port(), headers.length == 0 ? request : request.headers(headers), path);
    }

    HttpResponse<String> management(String path, String... headers) throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder();
        return send(managementPort(), headers.length == 0 ? request : request.headers(headers), path);
    }

    private static HttpResponse<String> send(int port, HttpRequest.Builder request, String path)
            throws IOException, InterruptedException {
        return CLIENT.send(request.uri(URI.create("http://127.0.0.1:" + port + path)).build(),
                HttpResponse.BodyHandlers.ofString());
    }

    /** Sum over a metric's series, each with its labels or by its bare name; NaN where there is none. */
    double metric(String name) throws IOException, InterruptedException {
        return management("/actuator/prometheus").body().lines()
                .filter(line -> line.startsWith(name + " ") || line.startsWith(name + "{"))
                .mapToDouble(line -> number(line.substring(line.lastIndexOf(' ') + 1)))
                .reduce(Double::sum).orElse(Double.NaN);
    }

    /** Reads a metric until it is as expected or patience ends. */
    double metricOnce(String name, DoublePredicate expected) throws IOException, InterruptedException {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        double value = metric(name);
        while (!expected.test(value) && System.nanoTime() < deadline) {
            Thread.sleep(20);
            value = metric(name);
        }
        return value;
    }

    private static double number(String text) {
        return text.equals("+Inf") ? Double.POSITIVE_INFINITY : Double.parseDouble(text);
    }

    /** Ends the target. */
    @Override
    public abstract void close() throws IOException;
}
