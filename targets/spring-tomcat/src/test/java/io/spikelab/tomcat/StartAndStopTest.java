package io.spikelab.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class StartAndStopTest {

    @Test
    void endsWithOneLineOnAWrongValue() throws Exception {
        assertRefused(Map.of("TOMCAT_MAX_THREADS", "0"),
                "TOMCAT_MAX_THREADS=0: must be an integer from 1 to 20000 (target.yml)");
    }

    @Test
    void endsWithOneLineOnAPortInUse() throws Exception {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            String port = String.valueOf(taken.getLocalPort());
            assertRefused(Map.of("TARGET_PORT", port), "TARGET_PORT=" + port + ": cannot listen on 127.0.0.1:" + port
                    + " (Address already in use); set another TARGET_PORT or free it");
        }
    }

    @Test
    void endsWithOneLineOnAWrongAddress() throws Exception {
        assertRefused(Map.of("TARGET_ADDRESS", "300.1.1.1"),
                "TARGET_ADDRESS=300.1.1.1: must be an address of this machine");
        assertRefused(Map.of("TARGET_PORT", "18080", "TARGET_MANAGEMENT_PORT", "18080"),
                "TARGET_MANAGEMENT_PORT=18080: must differ from TARGET_PORT");
    }

    @Test
    void endsWithOneLineOnAWrongKeyFile() throws Exception {
        assertRefused(Map.of("AUTHZ_PRIVATE_KEY_FILE", "/absent"), "AUTHZ_PRIVATE_KEY_FILE=/absent: no such file; "
                + "make one with: openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out FILE");
    }

    @Test
    void stopsWithinTwoSecondsAlthoughStaleRequestsAreQueued() throws Exception {
        int port = FreePorts.take();
        Map<String, String> environment = Map.of("TARGET_PORT", String.valueOf(port), "TARGET_MANAGEMENT_PORT", "0",
                "TOMCAT_MAX_THREADS", "2", "TARGET_HELLO_DELAY_MS", "60000");
        try (TargetProcess target = new TargetProcess(environment)) {
            target.awaitStarted();
            queueRequestsOfClientsThatLeave(port, 40);
            long begin = System.nanoTime();
            target.terminate();
            assertEquals(143, target.exitCode());
            double seconds = (System.nanoTime() - begin) / 1e9;
            assertTrue(seconds <= 2.0, "stopping took " + seconds + " s");
            assertEquals(List.of(), target.errorLines());
        }
    }

    private static void queueRequestsOfClientsThatLeave(int port, int clients) throws Exception {
        List<RawConnection> connections = new ArrayList<>();
        for (int i = 0; i < clients; i++) {
            connections.add(new RawConnection(port).get("/hello"));
        }
        Thread.sleep(300);
        for (RawConnection connection : connections) {
            connection.close();
        }
    }

    private static void assertRefused(Map<String, String> environment, String line) throws Exception {
        try (TargetProcess target = new TargetProcess(environment)) {
            assertEquals(1, target.exitCode());
            assertEquals(List.of(line), target.errorLines());
            assertEquals(List.of(), target.outputLines());
        }
    }
}
