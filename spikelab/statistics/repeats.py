"""One verdict over several runs of the same step."""

from collections.abc import Sequence

from spikelab.record import Verdict


def over_repeats(verdicts: Sequence[Verdict], needed: int) -> Verdict:
    """Pass or fail when at least `needed` runs say so and none says the opposite.

    The run is the unit of replication: requests of several runs are never counted together, for
    that hides runs that disagree. An inconclusive run decides nothing either way.
    """
    passed, failed = verdicts.count("pass"), verdicts.count("fail")
    if passed >= needed and not failed:
        return "pass"
    return "fail" if failed >= needed and not passed else "inconclusive"
