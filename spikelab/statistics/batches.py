"""What the batches of a step say, stretches of equal length one after the other: how far its
requests depend on their neighbours, and whether its answers become slower.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from spikelab.statistics.shares import CONFIDENCE

# As many as a step's length is divided into; with fewer than the least nothing is said.
_MOST_BATCHES = 10
FEWEST_BATCHES = 5
# A rise that chance alone makes in one of a hundred steps.
_CHANCE = 0.01


def batches_of(seconds: int) -> int:
    """Into how many of equal length a step is divided; none is shorter than a second, as a series
    has a value each second."""
    return min(_MOST_BATCHES, seconds)


def dependence(misses: Sequence[float], requests: Sequence[float]) -> float:
    """How many requests count as one independent one; at least 1.

    The variance of the batches' shares of misses over that of independent requests (batch means:
    Law, Simulation Modeling and Analysis, ch. 9), enlarged for being estimated from few batches
    (Korn and Graubard 1998). 1 where nothing or everything missed: there is nothing to see.
    """
    # SciPy takes half a second to load.
    from scipy.stats import t

    asked, missed, batches = sum(requests), sum(misses), len(requests)
    if batches < FEWEST_BATCHES or not 0 < missed < asked:
        return 1.0
    share = missed / asked
    spread = sum((m - share * n) ** 2 for m, n in zip(misses, requests, strict=True))
    variance = batches / (batches - 1) * spread / asked**2
    found = variance / (share * (1 - share) / asked)
    if found <= 1:
        return 1.0
    few, many = (float(t.ppf(CONFIDENCE, count - 1)) for count in (batches, max(asked, 2.0)))
    return max(1.0, min(asked, found * (few / many) ** 2))


@dataclass(frozen=True)
class Rise:
    """From the mean of the first third of the batches to that of the last."""

    first: float
    last: float


def rise(values: Sequence[float]) -> Rise | None:
    """How values rise from batch to batch; None where chance explains it (1 %).

    Rank test: Mann, Nonparametric tests against trend, Econometrica 13 (1945).
    """
    if len(values) < FEWEST_BATCHES:
        return None
    from scipy.stats import kendalltau

    found = kendalltau(range(len(values)), values, alternative="greater")
    # All of them alike: no order, and no number.
    if not found.pvalue <= _CHANCE:
        return None
    third = max(1, len(values) // 3)
    return Rise(fmean(values[:third]), fmean(values[-third:]))
