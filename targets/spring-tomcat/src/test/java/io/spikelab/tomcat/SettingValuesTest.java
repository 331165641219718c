package io.spikelab.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SettingValuesTest {

    @ParameterizedTest
    @CsvSource(delimiter = '|', ignoreLeadingAndTrailingWhitespace = false, value = {
        "TOMCAT_MAX_THREADS|0|must be an integer from 1 to 20000 (target.yml)",
        "TOMCAT_MAX_THREADS|-5|must be an integer from 1 to 20000 (target.yml)",
        "TOMCAT_MAX_THREADS|20001|must be an integer from 1 to 20000 (target.yml)",
        "TOMCAT_MAX_THREADS|2e2|must be an integer from 1 to 20000 (target.yml)",
        "TOMCAT_MAX_THREADS|99999999999999999999|must be an integer from 1 to 20000 (target.yml)",
        "TOMCAT_ACCEPT_COUNT|many|must be an integer from 1 to 65535 (target.yml)",
        "TOMCAT_CONNECTION_TIMEOUT|20s|must be milliseconds, an integer from 1 to 3600000 (target.yml)",
        "TOMCAT_VIRTUAL_THREADS|yes|must be true or false (target.yml)",
        "TOMCAT_VIRTUAL_THREADS|true|needs Java 21 or newer, this is Java 17 (target.yml)",
        "AUTHZ_BLACKLIST|remote|must be local or redis (target.yml)",
        "TOMCAT_MIN_SPARE_THREADS|201|must not exceed TOMCAT_MAX_THREADS=200 (target.yml)",
    })
    void refusesAWrongValueInOneLine(String name, String value, String reason) {
        SettingValues values = new SettingValues(TargetDescription.load(), Map.of(name, value), 17);
        InvalidValueException refused = assertThrows(InvalidValueException.class, values::properties);
        assertEquals(name + "=" + value + ": " + reason, refused.getMessage());
    }

    @Test
    void keepsTheMessageToOneLine() {
        InvalidValueException refused = assertThrows(InvalidValueException.class,
                () -> properties("TOMCAT_MAX_THREADS", "1\n2"));
        assertEquals("TOMCAT_MAX_THREADS=1?2: must be an integer from 1 to 20000 (target.yml)",
                refused.getMessage());
    }

    @Test
    void takesEmptyAndBlankAsUnsetAndTrimsTheRest() {
        Map<String, Object> properties = properties("TOMCAT_MAX_THREADS", "", "TOMCAT_ACCEPT_COUNT", " \t",
                "TOMCAT_MAX_CONNECTIONS", " 50 ", "TOMCAT_VIRTUAL_THREADS", " TRUE");
        assertEquals("200", properties.get("server.tomcat.threads.max"));
        assertEquals("100", properties.get("server.tomcat.accept-count"));
        assertEquals("50", properties.get("server.tomcat.max-connections"));
        assertEquals("true", properties.get("spring.threads.virtual.enabled"));
    }

    @Test
    void letsKeepAliveFollowTheConnectionTimeout() {
        assertEquals("30000", properties("TOMCAT_CONNECTION_TIMEOUT", "30000")
                .get("server.tomcat.keep-alive-timeout"));
        assertEquals("7", properties("TOMCAT_CONNECTION_TIMEOUT", "30000", "TOMCAT_KEEP_ALIVE_TIMEOUT", "7")
                .get("server.tomcat.keep-alive-timeout"));
    }

    @Test
    void lowersTheDefaultOfSpareThreadsToTheMaximum() {
        assertEquals("1", properties("TOMCAT_MAX_THREADS", "1").get("server.tomcat.threads.min-spare"));
        assertEquals("10", properties("TOMCAT_MAX_THREADS", "11").get("server.tomcat.threads.min-spare"));
    }

    private static Map<String, Object> properties(String... namesAndValues) {
        return new SettingValues(TargetDescription.load(), RunningTarget.settings(namesAndValues), 25).properties();
    }
}
