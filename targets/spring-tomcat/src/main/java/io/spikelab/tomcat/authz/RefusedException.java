package io.spikelab.tomcat.authz;

/** A token is not accepted. It has no stack trace, as a flood of wrong tokens must stay cheap. */
final class RefusedException extends Exception {

    private static final long serialVersionUID = 1L;

    private final Refusal refusal;

    RefusedException(Refusal refusal) {
        super(refusal.label(), null, false, false);
        this.refusal = refusal;
    }

    Refusal refusal() {
        return refusal;
    }
}
