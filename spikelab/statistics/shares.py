"""Objectives as statements about a share: of requests that failed, or were slower than a limit."""

import math

from scipy.stats import binomtest

from spikelab.objectives import QUANTILES, Objective, Verdict
from spikelab.statistics import CONFIDENCE


def allowed_share(objective: Objective) -> float:
    """The share of requests that may miss the objective.

    ``success >= 99.9%``: 0.001 may fail. ``p95 < 1s``: 0.05 may take a second or longer, failures
    and drops among them.
    """
    met = objective.limit if objective.key == "success" else QUANTILES[objective.key]
    # Rounded, for 1 - 0.999 is a little more than 0.001.
    return round(1 - met, 12)


def share_bounds(misses: int, requests: int) -> tuple[float, float]:
    """Lower and upper bound of the true share of misses, each one-sided at 95 %.

    Exact for independent requests: Clopper and Pearson, The use of confidence or fiducial limits,
    Biometrika 26 (1934). Requests of one run are not independent (a full queue delays them
    together), so the bounds are of this run's luck and at best as wide as they should be.
    """
    # The two one-sided 95 % bounds are the ends of the two-sided 90 % interval.
    interval = binomtest(misses, requests).proportion_ci(2 * CONFIDENCE - 1, method="exact")
    return float(interval.low), float(interval.high)


def judge_share(misses: int, requests: int, allowed: float) -> Verdict:
    """Pass when the share of misses is at most `allowed` with 95 % confidence, fail when it is
    above with as much, else inconclusive.

    Nothing asked is inconclusive. With `allowed` 0 one miss fails, and no number of good answers
    passes: that a request never fails cannot be measured.
    """
    if not requests:
        return "inconclusive"
    low, high = share_bounds(misses, requests)
    if high <= allowed:
        return "pass"
    return "fail" if low > allowed else "inconclusive"


def fewest_requests(allowed: float) -> int:
    """Requests from which on a step without any miss passes: 299 for p99, 2,995 for p99.9.

    Source: (1 - allowed)^n <= 0.05, as Wilks, Determination of sample sizes for setting tolerance
    limits, Annals of Mathematical Statistics 12 (1941). Raises ValueError outside of 0 to 1.
    """
    if not 0 < allowed < 1:
        raise ValueError(f"no number of requests shows a share of misses of {allowed}")
    return math.ceil(math.log(1 - CONFIDENCE) / math.log(1 - allowed))
