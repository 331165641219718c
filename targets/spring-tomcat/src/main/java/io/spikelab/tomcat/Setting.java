package io.spikelab.tomcat;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;

/**
 * One setting as {@code target.yml} declares it. The lab reads the file as well (spikelab/settings.py):
 * tests/data/target_settings.json holds both to one meaning.
 *
 * @param name environment variable
 * @param property Spring property it sets
 * @param type integer, milliseconds, boolean or choice
 * @param defaultValue the declared default, as text
 * @param minimum smallest number allowed
 * @param maximum largest number allowed
 * @param choices what a choice may be; empty for every other type
 * @param defaultFollows variable whose value replaces the default, or null
 * @param atMost variable that a value set by hand may not exceed, or null
 * @param needsJava Java release that {@code true} needs, or 0
 */
public record Setting(String name, String property, Type type, String defaultValue, long minimum, long maximum,
        List<String> choices, String defaultFollows, String atMost, int needsJava) {

    private static final Pattern WHOLE_NUMBER = Pattern.compile("-?[0-9]{1,15}");

    /** How the text of a value is read. */
    public enum Type {
        INTEGER, MILLISECONDS, BOOLEAN, CHOICE
    }

    static Setting declared(String name, Map<String, Object> declaration) {
        return new Setting(name, text(declaration, "property"),
                Type.valueOf(text(declaration, "type").toUpperCase(Locale.ROOT)), text(declaration, "default"),
                number(declaration, "minimum", 0), number(declaration, "maximum", Integer.MAX_VALUE),
                texts(declaration, "choices"),
                (String) declaration.get("default_follows"), (String) declaration.get("at_most"),
                (int) number(declaration, "needs_java", 0));
    }

    static Setting port(String name, String property, int defaultPort) {
        return new Setting(name, property, Type.INTEGER, String.valueOf(defaultPort), 0, 65535, List.of(), null, null,
                0);
    }

    /** A whole number that is given elsewhere than in the environment. */
    public static Setting wholeNumber(long minimum, long maximum) {
        return new Setting(null, null, Type.INTEGER, null, minimum, maximum, List.of(), null, null, 0);
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
        if (!isValid(trimmed)) {
            throw new InvalidValueException(source, shortened(value), "must be " + allowed() + declaredIn);
        }
        return switch (type) {
            case BOOLEAN -> trimmed.toLowerCase(Locale.ROOT);
            case CHOICE -> trimmed;
            case INTEGER, MILLISECONDS -> String.valueOf(Long.parseLong(trimmed));
        };
    }

    /** A value, in its normal form, as its metric: a choice is its place, a negative number unlimited. */
    public double exported(String value) {
        return switch (type) {
            case BOOLEAN -> Boolean.parseBoolean(value) ? 1 : 0;
            case CHOICE -> choices.indexOf(value);
            case INTEGER, MILLISECONDS -> value.startsWith("-") ? Double.POSITIVE_INFINITY : Long.parseLong(value);
        };
    }

    private boolean isValid(String value) {
        return switch (type) {
            case BOOLEAN -> isBoolean(value);
            case CHOICE -> choices.contains(value);
            case INTEGER, MILLISECONDS -> isInRange(value);
        };
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
            case CHOICE -> String.join(" or ", choices);
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

    private static List<String> texts(Map<String, Object> declaration, String key) {
        return declaration.get(key) instanceof List<?> list ? list.stream().map(String::valueOf).toList() : List.of();
    }

    private static long number(Map<String, Object> declaration, String key, long absent) {
        return declaration.get(key) instanceof Number number ? number.longValue() : absent;
    }
}
