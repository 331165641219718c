package io.spikelab.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class ManagementConnectorTest {

    @Test
    void answersWhileTrafficIsSaturatedAndAScraperStaysConnected() throws Exception {
        try (RunningTarget target = RunningTarget.with("TOMCAT_MAX_THREADS", "1", "TOMCAT_MAX_CONNECTIONS", "1",
                "TOMCAT_ACCEPT_COUNT", "1", "TARGET_HELLO_DELAY_MS", "3000");
                RawConnection scraper = new RawConnection(target.managementPort())) {
            assertEquals(200, scraper.get("/actuator/prometheus").status());
            List<RawConnection> traffic = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                traffic.add(new RawConnection(target.port()).get("/hello"));
            }
            assertEquals(1, target.metricOnce("tomcat_threads_busy_threads", busy -> busy == 1));
            for (String path : List.of("/actuator/health", "/actuator/health/liveness",
                    "/actuator/health/readiness")) {
                assertAnswersWithinASecond(target, path);
            }
            assertEquals(200, scraper.get("/actuator/prometheus").status());
            for (RawConnection connection : traffic) {
                connection.close();
            }
        }
    }

    private static void assertAnswersWithinASecond(RunningTarget target, String path) throws Exception {
        long begin = System.nanoTime();
        try (RawConnection connection = new RawConnection(target.managementPort())) {
            assertEquals(200, connection.get(path).status());
        }
        double seconds = (System.nanoTime() - begin) / 1e9;
        assertTrue(seconds < 1, path + " took " + seconds + " s");
    }
}
