package io.spikelab.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

class SettingMetricsTest {

    @Test
    void showsWhatTheRunningConnectorHas() throws Exception {
        Map<String, Setting> declared = TargetDescription.load().settings();
        Map<String, String> settings = new HashMap<>();
        declared.forEach((name, setting) -> settings.put(name, changed(setting, settings.size())));
        try (RunningTarget target = RunningTarget.changed(settings)) {
            for (Map.Entry<String, String> setting : settings.entrySet()) {
                assertEquals(declared.get(setting.getKey()).exported(setting.getValue()),
                        target.metric("tomcat_setting{name=\"" + setting.getKey() + "\"}"), setting.getKey());
            }
        }
    }

    /** A number that no other setting here has; of what needs another Java or a broker the default. */
    private static String changed(Setting setting, int place) {
        return switch (setting.type()) {
            case INTEGER, MILLISECONDS -> String.valueOf(Math.min(setting.maximum(), 300) - place);
            case BOOLEAN, CHOICE -> setting.defaultValue();
        };
    }

    @Test
    void showsUnlimitedAsInfinite() throws Exception {
        try (RunningTarget target = RunningTarget.with("TOMCAT_MAX_KEEP_ALIVE_REQUESTS", "-1",
                "TOMCAT_CONNECTION_TIMEOUT", "1234")) {
            assertEquals(Double.POSITIVE_INFINITY,
                    target.metric("tomcat_setting{name=\"TOMCAT_MAX_KEEP_ALIVE_REQUESTS\"}"));
            assertEquals(1234, target.metric("tomcat_setting{name=\"TOMCAT_KEEP_ALIVE_TIMEOUT\"}"));
        }
    }
}
