package io.spikelab.tomcat.authz;

import java.util.Locale;

/** Why a token is not accepted, in the order of the checks: counted, and never told to the caller. */
public enum Refusal {
    MISSING_TOKEN,
    OVERSIZED,
    /** Not three parts of base64url that hold what a JWT holds. */
    GARBAGE,
    ALG_NONE,
    WRONG_ALGORITHM,
    WRONG_KEY_ID,
    BAD_SIGNATURE,
    MISSING_CLAIMS,
    EXPIRED,
    NOT_YET_VALID,
    REVOKED,
    /** Not known to be revoked, but a revocation was refused for want of room. */
    BLACKLIST_FULL,
    /** Not known to be revoked, and who would know cannot be asked. */
    BLACKLIST_UNAVAILABLE;

    /** Its value of the label {@code reason}. */
    public String label() {
        return name().toLowerCase(Locale.ROOT);
    }
}
