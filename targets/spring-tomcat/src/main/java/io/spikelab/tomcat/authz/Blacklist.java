package io.spikelab.tomcat.authz;

/** Where revoked tokens are kept and looked up. */
interface Blacklist extends AutoCloseable {

    /**
     * Whether the token is revoked.
     *
     * @throws RefusedException where that cannot be told
     */
    boolean holds(String id) throws RefusedException;

    /**
     * Revokes a token until it expires.
     *
     * @return false where there is no room for it
     * @throws RefusedException where it cannot be kept for another reason
     */
    boolean revoke(VerifiedToken token) throws RefusedException;

    /** Whether a token that is not held may have been revoked all the same. */
    boolean isIncomplete();

    /**
     * Starts what it needs beside itself, and waits until it can tell of every token.
     *
     * @throws InterruptedException where it was closed meanwhile
     */
    default void prepare() throws InterruptedException {
    }

    @Override
    default void close() {
    }
}
