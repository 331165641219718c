package io.spikelab.tomcat;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;

/** Values of the declared settings: what the environment gives, else the declared default. */
final class SettingValues {

    private final TargetDescription description;
    private final Map<String, String> environment;
    private final int javaRelease;

    SettingValues(TargetDescription description, Map<String, String> environment, int javaRelease) {
        this.description = description;
        this.environment = environment;
        this.javaRelease = javaRelease;
    }

    /**
     * Spring properties for every declared setting.
     *
     * @throws InvalidValueException for the first value that is not allowed
     */
    Map<String, Object> properties() {
        Map<String, Object> properties = new LinkedHashMap<>();
        for (Setting setting : description.settings().values()) {
            String value = valueOf(setting);
            checkAgainstOthers(setting, value);
            properties.put(setting.property(), value);
        }
        return properties;
    }

    /** The text given for a variable; empty where it is unset or blank. */
    static Optional<String> given(String name, Map<String, String> environment) {
        return Optional.ofNullable(environment.get(name)).filter(value -> !value.isBlank());
    }

    private String valueOf(Setting setting) {
        return given(setting.name(), environment).map(setting::parse).orElseGet(() -> defaultOf(setting));
    }

    private String defaultOf(Setting setting) {
        String value = setting.defaultFollows() == null ? setting.defaultValue()
                : valueOf(description.setting(setting.defaultFollows()));
        if (setting.atMost() == null) {
            return value;
        }
        long limit = Long.parseLong(valueOf(description.setting(setting.atMost())));
        return String.valueOf(Math.min(limit, Long.parseLong(value)));
    }

    private void checkAgainstOthers(Setting setting, String value) {
        if (setting.needsJava() > javaRelease && value.equals("true")) {
            throw new InvalidValueException(setting.name(), value, "needs Java " + setting.needsJava()
                    + " or newer, this is Java " + javaRelease + " (target.yml)");
        }
        if (setting.atMost() != null) {
            String limit = valueOf(description.setting(setting.atMost()));
            if (Long.parseLong(value) > Long.parseLong(limit)) {
                throw new InvalidValueException(setting.name(), value,
                        "must not exceed " + setting.atMost() + "=" + limit + " (target.yml)");
            }
        }
    }
}
