"""Whether a share of failed or slow requests is at most the one that is allowed.

docs/statistics.md says what is decided how, and why.
"""

from spikelab.objectives import Verdict

# Of every interval and bound.
CONFIDENCE = 0.95


def share_bounds(misses: int, requests: int) -> tuple[float, float]:
    """Lower and upper bound of the true share of misses, each one-sided at 95 %.

    Exact for independent requests: Clopper and Pearson, The use of confidence or fiducial limits,
    Biometrika 26 (1934). Requests of one run are not independent (a full queue delays them
    together), so the bounds are of this run's luck and at best as wide as they should be.
    """
    # SciPy takes half a second to load.
    from scipy.stats import binomtest

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
