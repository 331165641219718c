"""Objectives as shares: how many of a step's requests may miss one, and whether they do."""

import math

from spikelab.objectives import Verdict

# Of every interval and bound.
CONFIDENCE = 0.95
# More requests than a step could ever have.
_MOST_REQUESTS = 10**9


def share_bounds(misses: float, requests: float, dependence: float = 1.0) -> tuple[float, float]:
    """Lower and upper bound of the true share of misses, each one-sided at 95 %.

    Exact for independent requests: Clopper and Pearson, The use of confidence or fiducial limits,
    Biometrika 26 (1934). `dependence`: how many requests count as one, since a full queue delays
    neighbours together (`statistics.batches`): Korn and Graubard, Confidence intervals for
    proportions with small expected number of positive counts, Survey Methodology 24 (1998).
    """
    # SciPy takes half a second to load.
    from scipy.stats import beta

    missed, all_of_them = misses / dependence, requests / dependence
    good = all_of_them - missed
    low = float(beta.ppf(1 - CONFIDENCE, missed, good + 1)) if misses else 0.0
    high = float(beta.ppf(CONFIDENCE, missed + 1, good)) if misses < requests else 1.0
    return low, high


def judge_share(misses: float, requests: float, allowed: float, dependence: float = 1.0) -> Verdict:
    """Pass when the share of misses is at most `allowed` with 95 % confidence, fail when it is
    above with as much, else inconclusive.

    Nothing asked is inconclusive. With `allowed` 0 one miss fails, and no number of good answers
    passes: that a request never fails cannot be measured.
    """
    if not requests:
        return "inconclusive"
    low, high = share_bounds(misses, requests, dependence)
    if high <= allowed:
        return "pass"
    return "fail" if low > allowed else "inconclusive"


def judge_count(misses: int, requests: int, allowed: float, below: bool = False) -> Verdict:
    """The same where those who were asked are all there are, as the users of a spike: their share
    is known, not estimated. `below`: just as many as are allowed are too many."""
    if not requests:
        return "inconclusive"
    # Rounded: a share of a count is rarely a number that binary has exactly.
    most = round(allowed * requests, 6)
    return "pass" if misses < most or (misses == most and not below) else "fail"


def requests_needed(
    misses: float, requests: int, allowed: float, dependence: float = 1.0
) -> int | None:
    """How many requests decide it if so large a share of them misses; None where no number does.

    Without a miss this is Wilks' number: 59 for 5 %, 299 for 1 %, 2,995 for 0.1 %.
    """
    share = misses / requests if requests else 0.0

    def decided(count: int) -> bool:
        return judge_share(share * count, count, allowed, dependence) != "inconclusive"

    if not misses:
        if not allowed:
            return None
        return math.ceil(dependence * math.log(1 - CONFIDENCE) / math.log1p(-allowed))
    low, high = 1, 2
    while not decided(high):
        low, high = high, 2 * high
        if high > _MOST_REQUESTS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decided(middle) else (middle, high)
    return high
