package io.spikelab.tomcat.authz;

import io.spikelab.tomcat.authz.AuthzMetrics.Revocation;

/** Decides on bearer tokens, revokes them, and counts and times what it does. */
final class Authorizer {

    private static final String SCHEME = "Bearer";

    private final Tokens tokens;
    private final Blacklist blacklist;
    private final LookupMetrics lookups;
    private final AuthzMetrics metrics;

    Authorizer(Tokens tokens, Blacklist blacklist, LookupMetrics lookups, AuthzMetrics metrics) {
        this.tokens = tokens;
        this.blacklist = blacklist;
        this.lookups = lookups;
        this.metrics = metrics;
    }

    /**
     * Decides on a request, and counts it once.
     *
     * @param authorization value of its header of that name, or null
     * @return null where it is allowed, else the reason why not
     */
    Refusal check(String authorization) {
        long begin = System.nanoTime();
        Refusal refusal = decide(authorization);
        metrics.observeRequest(System.nanoTime() - begin);
        if (refusal == null) {
            metrics.countAllowed();
        } else {
            metrics.countRefused(refusal);
        }
        return refusal;
    }

    /** Revokes the presented token, which has to be valid itself, until it expires. */
    Revocation revoke(String authorization) {
        Revocation result = revokeVerified(authorization);
        metrics.countRevocation(result);
        return result;
    }

    private Revocation revokeVerified(String authorization) {
        try {
            VerifiedToken token = tokens.verifier().verify(bearerToken(authorization));
            if (blacklist.holds(token.id())) {
                return Revocation.INVALID_TOKEN;
            }
            return blacklist.revoke(token) ? Revocation.ACCEPTED : Revocation.BLACKLIST_FULL;
        } catch (RefusedException refused) {
            return refused.refusal() == Refusal.BLACKLIST_UNAVAILABLE ? Revocation.BLACKLIST_UNAVAILABLE
                    : Revocation.INVALID_TOKEN;
        }
    }

    private Refusal decide(String authorization) {
        try {
            VerifiedToken token = verify(bearerToken(authorization));
            if (isRevoked(token)) {
                return Refusal.REVOKED;
            }
            return blacklist.isIncomplete() ? Refusal.BLACKLIST_FULL : null;
        } catch (RefusedException refused) {
            return refused.refusal();
        }
    }

    private VerifiedToken verify(String token) throws RefusedException {
        TokenVerifier verifier = tokens.verifier();
        long begin = System.nanoTime();
        try {
            return verifier.verify(token);
        } finally {
            metrics.observeVerification(System.nanoTime() - begin);
        }
    }

    private boolean isRevoked(VerifiedToken token) throws RefusedException {
        long begin = System.nanoTime();
        try {
            boolean held = blacklist.holds(token.id());
            lookups.observe(System.nanoTime() - begin);
            lookups.count(held);
            return held;
        } catch (RefusedException unanswered) {
            lookups.observe(System.nanoTime() - begin);
            throw unanswered;
        }
    }

    /** What follows the scheme, whose case does not matter; one space is meant, more are forgiven. */
    private static String bearerToken(String authorization) throws RefusedException {
        if (authorization == null || !authorization.regionMatches(true, 0, SCHEME + " ", 0, SCHEME.length() + 1)) {
            throw new RefusedException(Refusal.MISSING_TOKEN);
        }
        String token = authorization.substring(SCHEME.length() + 1).strip();
        if (token.isEmpty()) {
            throw new RefusedException(Refusal.MISSING_TOKEN);
        }
        return token;
    }
}
