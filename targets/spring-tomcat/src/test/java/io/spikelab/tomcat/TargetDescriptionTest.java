package io.spikelab.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

class TargetDescriptionTest {

    private final TargetDescription description = TargetDescription.load();

    @Test
    void declaresTheSettingsInOrderWithTheirDefaults() {
        List<String> declared = description.settings().values().stream()
                .map(setting -> setting.name() + "=" + setting.defaultValue()).toList();
        assertEquals(List.of("TOMCAT_MAX_THREADS=200", "TOMCAT_MIN_SPARE_THREADS=10",
                "TOMCAT_MAX_QUEUE_CAPACITY=2147483647", "TOMCAT_MAX_CONNECTIONS=8192", "TOMCAT_ACCEPT_COUNT=100",
                "TOMCAT_CONNECTION_TIMEOUT=20000", "TOMCAT_KEEP_ALIVE_TIMEOUT=20000",
                "TOMCAT_MAX_KEEP_ALIVE_REQUESTS=100", "TOMCAT_VIRTUAL_THREADS=false",
                "TARGET_HELLO_DELAY_MS=5000", "TARGET_AUTHZ_BLACKLIST_MAX_ENTRIES=100000",
                "AUTHZ_BLACKLIST=local"), declared);
    }

    @Test
    void acceptsItsOwnDefaults() {
        for (Setting setting : description.settings().values()) {
            assertEquals(setting.defaultValue(), setting.parse(setting.defaultValue()));
        }
    }

    @Test
    void namesOnlySettingsThatExist() {
        for (Setting setting : description.settings().values()) {
            if (setting.defaultFollows() != null) {
                assertEquals(setting.defaultValue(), description.setting(setting.defaultFollows()).defaultValue());
            }
            assertTrue(setting.atMost() == null || description.settings().containsKey(setting.atMost()));
        }
    }
}
