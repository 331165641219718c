package io.spikelab.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.prometheus.metrics.model.snapshots.HistogramSnapshot;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The time in the worker queue, on a server with one worker. */
class QueueWaitTest {

    private static final String COUNT = "tomcat_worker_queue_wait_seconds_count";
    private static final String SUM = "tomcat_worker_queue_wait_seconds_sum";
    private static final String REQUESTS = "http_server_requests_seconds_count";

    /** Answered 200, 404, 200 and 400; after the last, Tomcat closes the connection. */
    private static final List<String> PATHS = List.of("/hello?ms=0", "/absent", "/bytes/9", "/hello?ms=x");

    private RunningTarget target;

    @BeforeEach
    void start() {
        target = RunningTarget.with("TOMCAT_MAX_THREADS", "1", "TARGET_HELLO_DELAY_MS", "300");
    }

    @AfterEach
    void stop() {
        target.close();
    }

    @Test
    void timesEachRequestsWait() throws Exception {
        try (RawConnection first = new RawConnection(target.port()).get("/hello?ms=2000");
                RawConnection second = new RawConnection(target.port())) {
            assertEquals(1, target.metricOnce("tomcat_threads_busy_threads", busy -> busy == 1));
            long joined = System.nanoTime();
            second.get("/hello");
            assertEquals(200, first.status());
            assertEquals(200, second.status());
            double longest = (System.nanoTime() - joined) / 1e9 - 0.3;
            assertTrue(longest > 0.5, "joined only " + longest + " s before a worker was free");
            assertEquals(2, target.metricOnce(COUNT, count -> count == 2));
            double waited = target.metric(SUM);
            // The first request waits a little as well, for its worker to start.
            assertTrue(waited < longest + 0.1 && waited > longest - 0.4, "waited " + waited + " of " + longest + " s");
        }
    }

    @Test
    void countsAPipelinedRequestWithoutAWait() throws Exception {
        try (RawConnection connection = new RawConnection(target.port())) {
            connection.send(RawConnection.request("/hello", "keep-alive").repeat(3));
            for (int i = 0; i < 3; i++) {
                assertEquals(200, connection.status());
            }
            assertEquals(3, target.metricOnce(COUNT, count -> count == 3));
            double waited = target.metric(SUM);
            assertTrue(waited < 0.1, "waited " + waited + " s");
        }
    }

    @Test
    void countsWhatSpringCounts() throws Exception {
        for (String path : PATHS) {
            try (RawConnection own = new RawConnection(target.port())) {
                assertTrue(own.send(RawConnection.request(path, "close")).status() >= 200);
            }
        }
        assertCounts(4);
        try (RawConnection shared = new RawConnection(target.port())) {
            for (String path : PATHS) {
                assertTrue(shared.get(path).status() >= 200);
            }
        }
        assertCounts(8);
    }

    @Test
    void countsAuthorization() throws Exception {
        assertEquals(200, target.send("POST", "/api/v1/auth/token").statusCode());
        assertEquals(401, target.get("/api/v1/authz/ping").statusCode());
        assertEquals(401, target.send("POST", "/api/v1/auth/logout").statusCode());
        assertCounts(3);
    }

    @Test
    void leavesOutWhatTomcatRefusesByItself() throws Exception {
        for (String refused : List.of("nonsense\r\n\r\n", "GET /%zz HTTP/1.1\r\nHost: target\r\n\r\n",
                "GET /hello HTTP/1.1\r\n\r\n", RawConnection.request("/META-INF/x", "close"),
                "OPTIONS * HTTP/1.1\r\nHost: target\r\n\r\n", "TRACE / HTTP/1.1\r\nHost: target\r\n\r\n")) {
            try (RawConnection connection = new RawConnection(target.port()).send(refused)) {
                assertTrue(connection.status() >= 200, refused);
            }
        }
        assertEquals(200, target.get("/hello?ms=0").statusCode());
        assertCounts(1);
    }

    @Test
    void countsRequestsWhoseClientsLeft() throws Exception {
        List<RawConnection> connections = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            connections.add(new RawConnection(target.port()).get("/hello?ms=50"));
        }
        Thread.sleep(100);
        for (RawConnection connection : connections) {
            connection.close();
        }
        assertCounts(8);
    }

    @Test
    void isANativeAndAClassicHistogram() throws Exception {
        target.get("/hello?ms=0");
        assertEquals(1, target.metric("tomcat_worker_queue_wait_seconds_bucket{le=\"300.0\"}"));
        HistogramSnapshot histogram = target.registry().scrape().stream()
                .filter(metric -> metric.getMetadata().getName().equals("tomcat_worker_queue_wait_seconds"))
                .map(HistogramSnapshot.class::cast).findFirst().orElseThrow();
        assertEquals(5, histogram.getDataPoints().get(0).getNativeSchema());
        var answer = target.management("/actuator/prometheus", "Accept",
                "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited");
        assertTrue(answer.headers().firstValue("Content-Type").orElse("").contains("vnd.google.protobuf"));
    }

    private void assertCounts(int expected) throws Exception {
        assertEquals(expected, target.metricOnce(REQUESTS, count -> count == expected));
        assertEquals(expected, target.metric(COUNT));
    }
}
