package io.spikelab.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

class SettingMetricsTest {

    @Test
    void showsWhatTheRunningConnectorHas() throws Exception {
        Map<String, String> settings = new HashMap<>(RunningTarget.settings("TOMCAT_MAX_THREADS", "31",
                "TOMCAT_MIN_SPARE_THREADS", "3", "TOMCAT_MAX_QUEUE_CAPACITY", "77", "TOMCAT_MAX_CONNECTIONS", "501",
                "TOMCAT_ACCEPT_COUNT", "12", "TOMCAT_CONNECTION_TIMEOUT", "9000", "TOMCAT_KEEP_ALIVE_TIMEOUT", "8000",
                "TOMCAT_MAX_KEEP_ALIVE_REQUESTS", "5", "TARGET_HELLO_DELAY_MS", "7",
                "TARGET_AUTHZ_BLACKLIST_MAX_ENTRIES", "321"));
        try (RunningTarget target = RunningTarget.changed(settings)) {
            settings.put("TOMCAT_VIRTUAL_THREADS", "0");
            settings.put("AUTHZ_BLACKLIST", "0");
            assertEquals(TargetDescription.load().settings().keySet(), settings.keySet());
            for (Map.Entry<String, String> setting : settings.entrySet()) {
                assertEquals(Double.parseDouble(setting.getValue()),
                        target.metric("tomcat_setting{name=\"" + setting.getKey() + "\"}"), setting.getKey());
            }
        }
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
