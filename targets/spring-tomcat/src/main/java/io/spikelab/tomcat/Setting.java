package io.spikelab.tomcat;

import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;

/**
 * One setting as {@code target.yml} declares it.
 *
 * @param name environment variable
 * @param property Spring property it sets
 * @param type integer, milliseconds or boolean
 * @param defaultValue the declared default, as text
 * @param minimum smallest number allowed; not used for a boolean
 * @param maximum largest number allowed; not used for a boolean
 * @param defaultFollows variable whose value replaces the default, or null
 * @param atMost variable that a value set by hand may not exceed, or null
 * @param needsJava Java release that {@code true} needs, or 0
 */
public record Setting(String name, String property, Type type, String defaultValue, long minimum, long maximum,
        String defaultFollows, String atMost, int needsJava) {

    private static final Pattern WHOLE_NUMBER = Pattern.compile("[+-]?[0-9]{1,18}");

    /** How the text of a value is read. */
    public enum Type {
        INTEGER, MILLISECONDS, BOOLEAN
    }

    static Setting declared(String name, Map<String, Object> declaration) {
        return new Setting(name, text(declaration, "property"),
                Type.valueOf(text(declaration, "type").toUpperCase(Locale.ROOT)), text(declaration, "default"),
                number(declaration, "minimum"), number(declaration, "maximum"),
                (String) declaration.get("default_follows"), (String) declaration.get("at_most"),
                (int) number(declaration, "needs_java"));
    }

    static Setting port(String name, String property, int defaultPort) {
        return new Setting(name, property, Type.INTEGER, String.valueOf(defaultPort), 0, 65535, null, null, 0);
    }

    /**
     * Checks a value of the environment variable.
     *
     * @return its normal form
     * @throws InvalidValueException naming the variable, the value and what is allowed
     */
    public String parse(String value) {
        return parse(name, value, " (target.yml)");
    }

    /** The same check for a value that came from elsewhere, such as a query parameter. */
    public String parse(String source, String value) {
        return parse(source, value, "");
    }

    private String parse(String source, String value, String declaredIn) {
        String trimmed = value.strip();
        boolean valid = type == Type.BOOLEAN ? isBoolean(trimmed) : isInRange(trimmed);
        if (!valid) {
            throw new InvalidValueException(source, shortened(value), "must be " + allowed() + declaredIn);
        }
        return type == Type.BOOLEAN ? trimmed.toLowerCase(Locale.ROOT) : String.valueOf(Long.parseLong(trimmed));
    }

    private boolean isInRange(String value) {
        if (!WHOLE_NUMBER.matcher(value).matches()) {
            return false;
        }
        long number = Long.parseLong(value);
        return number >= minimum && number <= maximum;
    }

    private static boolean isBoolean(String value) {
        return value.equalsIgnoreCase("true") || value.equalsIgnoreCase("false");
    }

    private String allowed() {
        return switch (type) {
            case BOOLEAN -> "true or false";
            case INTEGER -> "an integer from " + minimum + " to " + maximum;
            case MILLISECONDS -> "milliseconds, an integer from " + minimum + " to " + maximum;
        };
    }

    private static String shortened(String value) {
        return value.length() > 60 ? value.substring(0, 60) + "..." : value;
    }

    private static String text(Map<String, Object> declaration, String key) {
        return String.valueOf(declaration.get(key));
    }

    private static long number(Map<String, Object> declaration, String key) {
        return declaration.get(key) instanceof Number number ? number.longValue() : 0;
    }
}
