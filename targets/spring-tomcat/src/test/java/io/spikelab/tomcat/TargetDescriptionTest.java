package io.spikelab.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

class TargetDescriptionTest {

    private final TargetDescription description = TargetDescription.load();

    @Test
    void declaresTheSettingsInTheOrderOfTheFile() throws Exception {
        List<String> inTheFile = Pattern.compile("^  ([A-Z_]+):", Pattern.MULTILINE)
                .matcher(Files.readString(Path.of("target.yml"))).results().map(found -> found.group(1)).toList();
        assertEquals(inTheFile, List.copyOf(description.settings().keySet()));
    }

    @Test
    void hasTheDefaultsOfThePublishedLadder() {
        Map<String, String> defaults = new HashMap<>();
        description.settings().forEach((name, setting) -> defaults.put(name, setting.defaultValue()));
        assertEquals("200", defaults.get("TOMCAT_MAX_THREADS"));
        assertEquals("8192", defaults.get("TOMCAT_MAX_CONNECTIONS"));
        assertEquals("100", defaults.get("TOMCAT_ACCEPT_COUNT"));
        assertEquals("20000", defaults.get("TOMCAT_CONNECTION_TIMEOUT"));
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
