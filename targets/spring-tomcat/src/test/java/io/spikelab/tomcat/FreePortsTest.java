package io.spikelab.tomcat;

import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

class FreePortsTest {

    @Test
    void givesNoPortTwice() {
        Set<Integer> given = new HashSet<>();
        for (int i = 0; i < 200; i++) {
            assertTrue(given.add(FreePorts.take()));
        }
    }

    @Test
    void givesNoneThatIsTaken() throws Exception {
        int port = FreePorts.take();
        try (ServerSocket taken = new ServerSocket(port + 1, 1, InetAddress.getLoopbackAddress())) {
            assertNotEquals(taken.getLocalPort(), FreePorts.take());
        }
    }

    /** Else a client of this machine may take the port while its server is down. */
    @Test
    @EnabledOnOs(OS.LINUX)
    void givesNoneThatTheKernelGivesOut() throws Exception {
        String range = Files.readAllLines(Path.of("/proc/sys/net/ipv4/ip_local_port_range")).get(0);
        assertTrue(FreePorts.END <= Integer.parseInt(range.split("\\s+")[0]), range);
        assertTrue(FreePorts.take() < FreePorts.END);
    }
}
