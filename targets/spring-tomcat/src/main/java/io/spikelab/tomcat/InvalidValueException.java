package io.spikelab.tomcat;

/** A value that is not allowed; the message is the one line that whoever gave it gets to read. */
public final class InvalidValueException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    public InvalidValueException(String name, String value, String reason) {
        super(name + "=" + value.replaceAll("\\p{Cntrl}", "?") + ": " + reason);
    }
}
