package io.spikelab.tomcat.worker;

/** Receives each request that has reached a servlet, once it is over. */
public interface RequestTimes {

    /**
     * What is known of a request when it is over.
     *
     * @param method as the client wrote it
     * @param path the pattern of its handler, or null where there was none
     * @param status of the answer
     * @param error what no handler caught, or null
     */
    record Outcome(String method, String path, int status, Class<? extends Throwable> error) {
    }

    void observe(Outcome outcome, long nanoseconds);
}
