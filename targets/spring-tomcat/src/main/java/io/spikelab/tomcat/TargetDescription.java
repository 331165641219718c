package io.spikelab.tomcat;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.LinkedHashMap;
import java.util.Map;
import org.yaml.snakeyaml.LoaderOptions;
import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.constructor.SafeConstructor;

/**
 * The settings declared in {@code target.yml}, in its order.
 *
 * @param settings declaration by environment variable
 */
public record TargetDescription(Map<String, Setting> settings) {

    /** Reads the file that the build packs beside the classes. */
    public static TargetDescription load() {
        try (InputStream file = TargetDescription.class.getResourceAsStream("/target.yml")) {
            return of(new Yaml(new SafeConstructor(new LoaderOptions())).load(file));
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    /** The content of such a file. */
    static TargetDescription of(Map<String, Object> root) {
        Map<String, Setting> settings = new LinkedHashMap<>();
        asSection(root.get("settings")).forEach((name, declaration) ->
                settings.put(name, Setting.declared(name, asSection(declaration))));
        return new TargetDescription(settings);
    }

    public Setting setting(String name) {
        return settings.get(name);
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> asSection(Object value) {
        return (Map<String, Object>) value;
    }
}
