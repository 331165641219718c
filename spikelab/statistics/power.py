"""What a comparison of so many pairs can decide, from the spread of its log-ratios.

Every figure here takes the observed deviation for the true one. From six pairs the true one may be
0.62 to 2.45 times that (95 %), and the pairs needed go with its square: an order of magnitude, not
a promise. No figure uses the observed ratio: power at the observed effect only repeats the p value
(Hoenig and Heisey, The abuse of power, The American Statistician 55 (2001)).
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2, nct, norm
from scipy.stats import t as student

from spikelab.statistics import CONFIDENCE
from spikelab.statistics.comparison import fewest_pairs
from spikelab.statistics.ratio import Ratio

POWER = 0.8
# More is no advice: the machine must become quieter first.
MOST_PAIRS = 1000
_CHI2_POINTS = 2000


@dataclass(frozen=True)
class Chances:
    """Of each verdict, by the interval's place; what is missing to 1 is inconclusive."""

    equivalent: float
    higher: float
    lower: float


@dataclass(frozen=True)
class Advice:
    """For a comparison that was inconclusive.

    `pairs`: needed in all for a right verdict with 80 % chance; None: more than 1,000.
    `more_pairs`: how many that is beyond those there were; 0: there were enough, and luck failed.
    `smallest_difference`: the true ratio above 1 that those there were would have told from 1
    with 80 % chance; its inverse is the one below.
    """

    pairs: int | None
    more_pairs: int | None
    smallest_difference: float


def chances(
    log_ratio: float,
    log_margin: float,
    log_error: float,
    freedom: int,
    confidence: float = CONFIDENCE,
) -> Chances:
    """Of the verdicts when ln(B / A) is truly `log_ratio` and the mean has standard error
    `log_error`.

    The mean is normal and its estimated error independent of it (chi-squared), so the chances
    are normal ones averaged over that error: the exact power of two one-sided tests (Phillips,
    J. Pharmacokinet. Biopharm. 18 (1990)), and of the t test where that comes second.
    """
    middles = (np.arange(_CHI2_POINTS) + 0.5) / _CHI2_POINTS
    estimated = log_error * np.sqrt(chi2.ppf(middles, freedom) / freedom)
    half = estimated * student.ppf((1 + confidence) / 2, freedom)
    inside = np.maximum(log_margin - half, 0)
    outside = np.maximum(half, inside)

    def share_up_to(log: np.ndarray) -> np.ndarray:
        return np.asarray(norm.cdf((log - log_ratio) / log_error))

    return Chances(
        equivalent=float(np.mean(share_up_to(inside) - share_up_to(-inside))),
        higher=float(np.mean(1 - share_up_to(outside))),
        lower=float(np.mean(share_up_to(-outside))),
    )


def advise(ratio: Ratio, margin: float) -> Advice:
    """What more pairs would bring, from the spread of those there are.

    More pairs are best a new comparison. Adding them to this one and looking again raises the
    chance of a false better or worse: docs/statistics.md says by how much.
    """
    pairs = pairs_needed(ratio.log_deviation, margin)
    more = None if pairs is None else max(0, pairs - ratio.pairs)
    return Advice(pairs, more, smallest_difference(ratio.log_deviation, ratio.pairs))


def pairs_needed(log_deviation: float, margin: float) -> int | None:
    """Pairs with which the verdict is right with 80 % chance, wherever the true ratio lies.

    Right is equivalent for 1, better or worse from the margin on, and either between; these are
    the hardest at 1, at half the margin and at the margin. None: more than 1,000.
    """
    log_margin = math.log1p(margin)

    def enough(pairs: int) -> bool:
        error = log_deviation / math.sqrt(pairs)
        equal, between, apart = (
            chances(share * log_margin, log_margin, error, pairs - 1) for share in (0, 0.5, 1)
        )
        right = equal.equivalent, between.equivalent + between.higher, apart.higher
        return min(right) >= POWER

    return _fewest(enough) if log_deviation else fewest_pairs()


def _fewest(enough: Callable[[int], bool]) -> int | None:
    """The fewest pairs that are enough, where more of them are too."""
    pairs = bisect_left(range(MOST_PAIRS + 1), True, lo=fewest_pairs(), key=enough)
    return pairs if pairs <= MOST_PAIRS else None


def smallest_difference(log_deviation: float, pairs: int) -> float:
    """The smallest true ratio above 1 that so many pairs tell from 1 with 80 % chance.

    Its inverse is the smallest below. By the noncentral t distribution: Cohen, Statistical Power
    Analysis for the Behavioral Sciences, 2nd ed. (1988), ch. 2.
    """
    freedom = pairs - 1
    critical = student.ppf((1 + CONFIDENCE) / 2, freedom)
    noncentrality = brentq(lambda shift: nct.sf(critical, freedom, shift) - POWER, 0, 100)
    return math.exp(float(noncentrality) * log_deviation / math.sqrt(pairs))
