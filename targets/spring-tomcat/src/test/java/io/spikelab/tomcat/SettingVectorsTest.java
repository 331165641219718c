package io.spikelab.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.yaml.snakeyaml.Yaml;

/** The target and the lab read a {@code target.yml} alike: tests/data/target_settings.json, as YAML. */
class SettingVectorsTest {

    private static final int NEWEST_JAVA = 99;

    private static Map<String, Object> table() throws IOException {
        return new Yaml().load(Files.readString(Path.of("../../tests/data/target_settings.json")));
    }

    static Stream<Arguments> cases() throws IOException {
        List<Map<String, Object>> cases = at(table(), "cases");
        return cases.stream().map(each -> Arguments.of(each.get("given"), each));
    }

    @ParameterizedTest
    @MethodSource("cases")
    void resolvesItAsTheLabDoes(Map<String, String> given, Map<String, Object> wanted) throws IOException {
        TargetDescription description = TargetDescription.of(at(table(), "declaration"));
        SettingValues values = new SettingValues(description, given, (int) wanted.getOrDefault("java", NEWEST_JAVA));
        if (wanted.containsKey("refused")) {
            String message = assertThrows(InvalidValueException.class, values::properties).getMessage();
            assertTrue(message.startsWith(wanted.get("refused") + "="), message);
            return;
        }
        Map<String, Object> properties = values.properties();
        Map<String, Object> resolved = at(wanted, "values");
        resolved.forEach((name, value) -> assertEquals(String.valueOf(value),
                properties.get(description.setting(name).property()), name));
        Map<String, Number> metrics = wanted.containsKey("metrics") ? at(wanted, "metrics") : Map.of();
        metrics.forEach((name, value) -> assertEquals(value == null ? Double.POSITIVE_INFINITY : value.doubleValue(),
                description.setting(name).exported(String.valueOf(resolved.get(name))), name));
    }

    @SuppressWarnings("unchecked")
    private static <T> T at(Map<String, Object> map, String key) {
        return (T) map.get(key);
    }
}
