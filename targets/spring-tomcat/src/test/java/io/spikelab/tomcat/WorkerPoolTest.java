package io.spikelab.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class WorkerPoolTest {

    private static final String DEPTH = "tomcat_worker_queue_depth";
    private static final String BUSY = "tomcat_threads_busy_threads";
    private static final String CURRENT = "tomcat_threads_current_threads";
    private static final String MAXIMUM = "tomcat_threads_config_max_threads";

    @Test
    void growsToTheMaximumBeforeItQueues() throws Exception {
        try (RunningTarget target = RunningTarget.with("TOMCAT_MAX_THREADS", "6", "TOMCAT_MIN_SPARE_THREADS", "2")) {
            assertEquals(2, target.metric(CURRENT));
            assertEquals(0, target.metric(BUSY));
            List<RawConnection> connections = requests(target, 9, "/hello?ms=2000");
            assertEquals(6, target.metricOnce(BUSY, busy -> busy == 6));
            assertEquals(3, target.metricOnce(DEPTH, depth -> depth == 3));
            assertEquals(6, target.metric(CURRENT));
            assertEquals(6, target.metric(MAXIMUM));
            assertAllAnswered(connections);
            assertEquals(0, target.metricOnce(DEPTH, depth -> depth == 0));
            assertEquals(0, target.metricOnce(BUSY, busy -> busy == 0));
        }
    }

    @Test
    void depthLeavesOutConnectionsThatOnlyWaitToBeClosed() throws Exception {
        try (RunningTarget target = RunningTarget.with("TOMCAT_MAX_THREADS", "1")) {
            List<RawConnection> idle = requests(target, 5, "/hello?ms=0");
            for (RawConnection connection : idle) {
                assertEquals(200, connection.status());
            }
            RawConnection busy = requests(target, 1, "/hello?ms=2500").get(0);
            assertEquals(1, target.metricOnce(BUSY, threads -> threads == 1));
            List<RawConnection> waiting = requests(target, 2, "/hello?ms=0");
            assertEquals(2, target.metricOnce(DEPTH, depth -> depth == 2));
            for (RawConnection connection : idle) {
                connection.close();
            }
            Thread.sleep(200);
            assertEquals(2, target.metric(DEPTH));
            assertAllAnswered(List.of(busy));
            assertAllAnswered(waiting);
        }
    }

    @Test
    void closesTheConnectionWhenTheQueueIsFull() throws Exception {
        try (RunningTarget target = RunningTarget.with("TOMCAT_MAX_THREADS", "1", "TOMCAT_MAX_QUEUE_CAPACITY", "1")) {
            RawConnection worked = requests(target, 1, "/hello?ms=2000").get(0);
            assertEquals(1, target.metricOnce(BUSY, busy -> busy == 1));
            RawConnection queued = requests(target, 1, "/hello?ms=0").get(0);
            assertEquals(1, target.metricOnce(DEPTH, depth -> depth == 1));
            RawConnection refused = requests(target, 1, "/hello?ms=0").get(0);
            assertThrows(IOException.class, refused::status);
            assertEquals(1, target.metric(DEPTH));
            assertAllAnswered(List.of(worked, queued));
            assertEquals(0, target.metric(DEPTH));
        }
    }

    /** Below Java 21 the same setting is refused. */
    @Test
    void virtualThreadsAreUnlimited() throws Exception {
        if (Runtime.version().feature() < 21) {
            InvalidValueException refused = assertThrows(InvalidValueException.class,
                    () -> RunningTarget.with("TOMCAT_VIRTUAL_THREADS", "true"));
            assertTrue(refused.getMessage().startsWith("TOMCAT_VIRTUAL_THREADS=true: needs Java 21"));
            return;
        }
        try (RunningTarget target = RunningTarget.with("TOMCAT_VIRTUAL_THREADS", "true", "TOMCAT_MAX_THREADS", "2")) {
            List<RawConnection> connections = requests(target, 30, "/hello?ms=2500");
            assertEquals(30, target.metricOnce(BUSY, busy -> busy == 30));
            assertEquals(30, target.metric(CURRENT));
            assertEquals(0, target.metric(DEPTH));
            assertEquals(Double.POSITIVE_INFINITY, target.metric(MAXIMUM));
            assertEquals(Double.POSITIVE_INFINITY, target.metric("tomcat_setting{name=\"TOMCAT_MAX_THREADS\"}"));
            assertEquals(1, target.metric("tomcat_setting{name=\"TOMCAT_VIRTUAL_THREADS\"}"));
            assertAllAnswered(connections);
            assertEquals(30, target.metricOnce("http_server_requests_seconds_count", count -> count == 30));
            assertEquals(30, target.metric("tomcat_worker_queue_wait_seconds_count"));
        }
    }

    private static List<RawConnection> requests(RunningTarget target, int count, String path) throws IOException {
        List<RawConnection> connections = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            connections.add(new RawConnection(target.port()).get(path));
        }
        return connections;
    }

    private static void assertAllAnswered(List<RawConnection> connections) throws IOException {
        for (RawConnection connection : connections) {
            assertEquals(200, connection.status());
            connection.close();
        }
    }
}
