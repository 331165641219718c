package io.spikelab.tomcat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.UnknownHostException;
import java.util.Map;

/** Where the target listens: TARGET_ADDRESS, TARGET_PORT and TARGET_MANAGEMENT_PORT; port 0 takes a free one. */
final class Addresses {

    private static final Setting PORT = Setting.port("TARGET_PORT", "server.port", 8080);
    private static final Setting MANAGEMENT_PORT =
            Setting.port("TARGET_MANAGEMENT_PORT", "management.server.port", 8081);

    private Addresses() {
    }

    /**
     * Spring properties for the two listeners.
     *
     * @throws InvalidValueException where an address cannot be bound, a port in use included
     */
    static Map<String, Object> properties(Map<String, String> environment) {
        InetAddress address = address(environment);
        int port = port(PORT, environment);
        int managementPort = port(MANAGEMENT_PORT, environment);
        if (port == managementPort && port != 0) {
            throw new InvalidValueException(MANAGEMENT_PORT.name(), String.valueOf(managementPort),
                    "must differ from " + PORT.name());
        }
        requireFree(PORT, address, port);
        requireFree(MANAGEMENT_PORT, address, managementPort);
        String host = address.getHostAddress();
        return Map.of("server.address", host, "management.server.address", host,
                PORT.property(), port, MANAGEMENT_PORT.property(), managementPort);
    }

    private static int port(Setting setting, Map<String, String> environment) {
        String value = SettingValues.given(setting.name(), environment).orElse(setting.defaultValue());
        return Integer.parseInt(setting.parse(setting.name(), value));
    }

    private static InetAddress address(Map<String, String> environment) {
        String name = SettingValues.given("TARGET_ADDRESS", environment).orElse("127.0.0.1").strip();
        try {
            return InetAddress.getByName(name);
        } catch (UnknownHostException unknown) {
            throw new InvalidValueException("TARGET_ADDRESS", name, "must be an address of this machine");
        }
    }

    private static void requireFree(Setting setting, InetAddress address, int port) {
        try (ServerSocket probe = new ServerSocket()) {
            probe.bind(new InetSocketAddress(address, port));
        } catch (IOException refused) {
            throw new InvalidValueException(setting.name(), String.valueOf(port), "cannot listen on "
                    + address.getHostAddress() + ":" + port + " (" + refused.getMessage() + "); set another "
                    + setting.name() + " or free it");
        }
    }
}
