package io.spikelab.tomcat.authz;

/**
 * What is needed of a token whose signature and times are right.
 *
 * @param id its {@code jti}
 * @param expiresMillis its {@code exp} in milliseconds since the epoch
 */
record VerifiedToken(String id, long expiresMillis) {
}
