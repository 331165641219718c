"""A against B over interleaved pairs of runs: better, worse, equivalent or inconclusive.

The ratio of the two with its interval over runs, the tests on it for one metric or several, the
share of false verdicts that each look at a question may have, and what a comparison of so many
pairs can decide from the spread of its log-ratios. No figure of the last kind uses the observed
ratio: power at the observed effect only repeats the p value (Hoenig and Heisey, The abuse of power,
The American Statistician 55 (2001)).

docs/statistics.md says what is decided how, and why. SciPy takes half a second to load, so the
functions that need it import it.
"""

import math
import statistics
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal

from spikelab.errors import UsageError
from spikelab.statistics.shares import CONFIDENCE

if TYPE_CHECKING:
    import numpy as np

# About B.
Answer = Literal["better", "worse", "equivalent", "inconclusive"]
# One figure of A's run and B's run. None: not measured. Infinite: failures count so.
Pair = tuple[float | None, float | None]

# Of all looks at one question together: false "better" or "worse" where nothing differs.
TOTAL_ERROR = 1 - CONFIDENCE
# The first comparison's part of it, and that of all after inconclusive ones. Some is left over, so
# that a simulation of them all shows less than the total too.
FIRST_ERROR = 0.04
_LATER_ERROR = 0.008


def error_of(earlier: int) -> float:
    """The share of false verdicts that a comparison may have after so many inconclusive ones of
    the same question: 4 %, 0.4 %, 0.2 %, 0.1 % … Together they stay below 5 %, however many there
    are and whatever runs they share, since chances of errors at most add up (Bonferroni)."""
    return _LATER_ERROR / 2**earlier if earlier else FIRST_ERROR


def planned_looks(pairs: int, looks: int) -> list[int]:
    """After how many pairs a comparison that may stop early is judged: evenly, the last at its
    end. Raises UsageError where the first look would have too few pairs."""
    found = [math.ceil(pairs * look / looks) for look in range(1, looks + 1)]
    if found[0] < fewest_pairs():
        raise UsageError(
            f"looks: {looks} at {pairs} pairs: the first would have {found[0]}, and needs "
            f"{fewest_pairs()}: at least {fewest_pairs() * looks} pairs (repeats: "
            f"{fewest_pairs() * looks}) or fewer looks"
        )
    return found


def error_of_look(error: float, looks: Sequence[int], look: int) -> float:
    """A planned look's part of the comparison's error, in proportion to its new pairs.

    Lan and DeMets, Discrete sequential boundaries for clinical trials, Biometrika 70 (1983), with
    a linear spending function (Kim and DeMets, Biometrika 74 (1987)); the parts are not enlarged
    for the looks' correlation, so that they hold for the sign test and any distribution alike.
    `look`: the first is 0.
    """
    return error * (looks[look] - (looks[look - 1] if look else 0)) / looks[-1]


@dataclass(frozen=True)
class Metric:
    """What is compared. `margin`: 0.05 means that up to 5 % either way does not matter."""

    name: str
    better: Literal["lower", "higher"]
    margin: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.margin < math.inf:
            raise ValueError(f"{self.name}: the margin {self.margin} is not above 0")


@dataclass(frozen=True)
class Ratio:
    """Geometric mean of the pairs' B / A.

    `low` to `high` is its two-sided interval, 95 % unless asked for otherwise. `log_deviation` is
    the standard deviation of the natural logarithms of the pairs' ratios.
    """

    mean: float
    low: float
    high: float
    pairs: int
    log_deviation: float

    @property
    def difference_p(self) -> float:
        """Two-sided p of "B equals A": at most 0.05 where a 95 % interval leaves 1 out."""
        log = abs(math.log(self.mean))
        return min(1.0, 2 * self._beyond(log)) if log else 1.0

    def equivalence_p(self, margin: float) -> float:
        """p of "they differ by more than the margin": at most 0.025 where a 95 % interval is
        inside.

        `margin`: 0.05 allows ratios from 1 / 1.05 to 1.05, so that swapping A and B changes
        nothing. The larger of two one-sided tests: Schuirmann, A comparison of the two one-sided
        tests procedure and the power approach, J. Pharmacokinet. Biopharm. 15 (1987).
        """
        return self._beyond(math.log1p(margin) - abs(math.log(self.mean)))

    def _beyond(self, log: float) -> float:
        """One-sided p of a distance from the mean, in logarithms."""
        error = self.log_deviation / math.sqrt(self.pairs)
        if not error:
            return 0.0 if log > 0 else 1.0
        from scipy.stats import t as student

        return float(student.sf(log / error, self.pairs - 1))


def ratio_of(ratios: Sequence[float], confidence: float = CONFIDENCE) -> Ratio:
    """Paired t on log-ratios: the unit of replication is the pair, not the request.

    `ratios`: one B / A for each pair, at least two, positive and finite. `confidence`: of the
    interval. Source: Student's paired
    test (Box, Hunter and Hunter, Statistics for Experimenters, 2nd ed., ch. 3) on logarithms, as
    Fleming and Wallace, How not to lie with statistics, CACM 29 (1986), ask of ratios.
    Raises ValueError.
    """
    from scipy.stats import t as student

    if len(ratios) < 2 or not all(0 < ratio < math.inf for ratio in ratios):
        raise ValueError(f"no interval of {list(ratios)}: it needs two positive, finite ratios")
    logs = [math.log(ratio) for ratio in ratios]
    mean, deviation, freedom = statistics.fmean(logs), statistics.stdev(logs), len(logs) - 1
    error = deviation / math.sqrt(len(logs))
    half = error * student.ppf((1 + confidence) / 2, freedom)
    return Ratio(
        mean=math.exp(mean),
        low=math.exp(mean - half),
        high=math.exp(mean + half),
        pairs=len(logs),
        log_deviation=deviation,
    )


@dataclass(frozen=True)
class Comparison:
    """B against A in one metric.

    `ratio` is B / A; None where some figure has no ratio, and `difference_p` is then a sign
    test's. `error`: the share of false verdicts that this look may have. Both p values are Holm's
    adjusted ones for a secondary metric; `ratio`'s interval is never adjusted. `reason` says in one
    line what kept the verdict from the usual way.
    """

    metric: Metric
    ratio: Ratio | None
    b_is_higher: bool
    difference_p: float
    equivalence_p: float
    error: float
    reason: str | None = None

    @property
    def verdict(self) -> Answer:
        """About B."""
        # First: a difference that is certain and certainly too small to matter is none. Both ends
        # of the interval inside the margin: each of the two one-sided tests has half the error.
        if self.equivalence_p <= self.error / 2:
            return "equivalent"
        if self.difference_p <= self.error:
            return "better" if self.b_is_higher == (self.metric.better == "higher") else "worse"
        return "inconclusive"


def fewest_pairs(metrics: int = 1) -> int:
    """The pairs from which on a test without any assumed distribution can decide.

    With k pairs that all point one way, the exact sign-flip test has p = 2 / 2^k, its floor
    (Fisher, The Design of Experiments, 1935, § 21): 6 pairs for one metric, 7 for the first of
    two by Holm, 11 of 40. The t interval has no such floor, but with fewer pairs it would stand on
    its assumption of normal log-ratios alone.
    """
    return math.ceil(1 + math.log2(metrics / TOTAL_ERROR))


def require_pairs(pairs: int) -> None:
    """Refuses a comparison that could not decide. Raises UsageError with the number needed."""
    if pairs < fewest_pairs():
        raise UsageError(
            f"repeats: {pairs} cannot decide a comparison: it needs at least {fewest_pairs()}"
            f" pairs (repeats: {fewest_pairs()})"
        )


def compare(
    primary: Metric,
    secondary: Sequence[Metric],
    pairs: Mapping[str, Sequence[Pair]],
    error: float = FIRST_ERROR,
) -> list[Comparison]:
    """The verdicts, the primary metric's first.

    `pairs`: of each metric's name, the figures of A and B in each pair of runs. `error`: the share
    of false verdicts that this look may have. The primary metric has it for itself, the secondary
    ones share as much by Holm.
    Raises UsageError for too few pairs, ValueError for a figure that is negative or not a number.
    """
    for metric in (primary, *secondary):
        require_pairs(len(pairs[metric.name]))
    rest = [_tested(metric, pairs[metric.name], error) for metric in secondary]
    adjusted = zip(
        rest,
        holm([each.difference_p for each in rest]),
        holm([each.equivalence_p for each in rest]),
        strict=True,
    )
    return [
        _tested(primary, pairs[primary.name], error),
        *(replace(each, difference_p=d, equivalence_p=e) for each, d, e in adjusted),
    ]


def _tested(metric: Metric, pairs: Sequence[Pair], error: float) -> Comparison:
    """One metric by itself: its p values are not adjusted."""
    measured = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not all(figure >= 0 for pair in measured for figure in pair):
        raise ValueError(f"{metric.name}: a figure is negative or not a number: {measured}")
    ratio = _ratio(measured, 1 - error)
    if len(measured) < fewest_pairs():
        reason = f"only {len(measured)} pairs have both figures: {fewest_pairs()} are needed"
        return Comparison(metric, ratio, False, 1.0, 1.0, error, reason)
    if ratio is None:
        b_is_higher, p, reason = _sign_test(measured)
        return Comparison(metric, None, b_is_higher, p, 1.0, error, reason)
    p_values = ratio.difference_p, ratio.equivalence_p(metric.margin)
    return Comparison(metric, ratio, ratio.mean > 1, *p_values, error)


def _ratio(measured: Sequence[tuple[float, float]], confidence: float) -> Ratio | None:
    """None where a figure is zero or infinite: leaving such pairs out would flatter one side."""
    if len(measured) < 2 or not all(0 < figure < math.inf for pair in measured for figure in pair):
        return None
    return ratio_of([b / a for a, b in measured], confidence)


def _sign_test(measured: Sequence[tuple[float, float]]) -> tuple[bool, float, str]:
    """Zero and infinity have no ratio, but an order: exact two-sided sign test, ties left out.

    Whether B is higher, the p value and what was counted. It never says equivalent.
    Source: Dixon and Mood, The statistical sign test, JASA 41 (1946).
    """
    from scipy.stats import binomtest

    higher = sum(b > a for a, b in measured)
    lower = sum(b < a for a, b in measured)
    p = float(binomtest(higher, higher + lower).pvalue) if higher + lower else 1.0
    reason = f"a figure is zero or infinite, so only order counts: B above A in {higher}"
    reason += f" pairs, below in {lower}, the same in {len(measured) - higher - lower}"
    return higher > lower, p, reason


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p values in the order given: at most 0.05 where Holm rejects at 5 %.

    The chance of any false rejection among them is then at most 5 %, however they depend on
    each other. Source: Holm, A simple sequentially rejective multiple test procedure, Scandinavian
    Journal of Statistics 6 (1979); adjusted values as in Wright, Biometrics 48 (1992).
    """
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    ascending = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, index in enumerate(ascending):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


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


def smallest_difference(log_deviation: float, pairs: int, error: float = FIRST_ERROR) -> float:
    """The smallest true ratio above 1 that so many pairs tell from 1 with 80 % chance.

    Its inverse is the smallest below. By the noncentral t distribution: Cohen, Statistical Power
    Analysis for the Behavioral Sciences, 2nd ed. (1988), ch. 2.
    """
    from scipy.optimize import brentq
    from scipy.stats import nct
    from scipy.stats import t as student

    freedom = pairs - 1
    critical = student.ppf(1 - error / 2, freedom)
    noncentrality = brentq(lambda shift: nct.sf(critical, freedom, shift) - POWER, 0, 100)
    return math.exp(float(noncentrality) * log_deviation / math.sqrt(pairs))


@dataclass(frozen=True)
class RepeatAdvice:
    """For a comparison that was inconclusive.

    `pairs_needed`: of a new comparison, for a right verdict with 80 % chance; None: more than
    1,000. `more_pairs`: how many that is beyond those there were; 0: no more than these.
    `smallest_difference`: the true ratio above 1 that those there were would have told from 1
    with 80 % chance; its inverse is the one below.
    """

    pairs_needed: int | None
    more_pairs: int | None
    smallest_difference: float


def chances(
    log_ratio: float,
    log_margin: float,
    log_error: float,
    freedom: int,
    confidence: float = 1 - FIRST_ERROR,
) -> Chances:
    """Of the verdicts when ln(B / A) is truly `log_ratio` and the mean has standard error
    `log_error`.

    The mean is normal and its estimated error independent of it (chi-squared), so the chances
    are normal ones averaged over that error: the exact power of two one-sided tests (Phillips,
    J. Pharmacokinet. Biopharm. 18 (1990)), and of the t test where that comes second.
    """
    import numpy as np
    from scipy.stats import norm
    from scipy.stats import t as student

    estimated = log_error * _estimated_errors(freedom)
    half = estimated * student.ppf((1 + confidence) / 2, freedom)
    inside = np.maximum(log_margin - half, 0)
    outside = np.maximum(half, inside)

    def share_up_to(log: "np.ndarray") -> "np.ndarray":
        return np.asarray(norm.cdf((log - log_ratio) / log_error))

    return Chances(
        equivalent=float(np.mean(share_up_to(inside) - share_up_to(-inside))),
        higher=float(np.mean(1 - share_up_to(outside))),
        lower=float(np.mean(share_up_to(-outside))),
    )


@cache
def _estimated_errors(freedom: int) -> "np.ndarray":
    """Estimates of a standard error that is truly 1, all equally likely."""
    import numpy as np
    from scipy.stats import chi2

    middles = (np.arange(_CHI2_POINTS) + 0.5) / _CHI2_POINTS
    return np.asarray(np.sqrt(chi2.ppf(middles, freedom) / freedom))


def advise(ratio: Ratio, margin: float, error: float, next_error: float) -> RepeatAdvice:
    """What a new comparison would need, from the spread of the pairs there are.

    `error`: this comparison's share of false verdicts; `next_error`: the new one's.
    """
    deviation = likely_deviation(ratio.log_deviation, ratio.pairs)
    pairs = pairs_needed(deviation, margin, next_error)
    more = None if pairs is None else max(0, pairs - ratio.pairs)
    return RepeatAdvice(pairs, more, smallest_difference(ratio.log_deviation, ratio.pairs, error))


def likely_deviation(log_deviation: float, pairs: int) -> float:
    """The deviation that the true one is below with 80 % confidence: from few pairs the observed
    one is often too small, and the pairs needed go with its square.

    Source: Browne, On the use of a pilot sample for sample size determination, Statistics in
    Medicine 14 (1995).
    """
    from scipy.stats import chi2

    return log_deviation * math.sqrt((pairs - 1) / float(chi2.ppf(1 - POWER, pairs - 1)))


def pairs_needed(log_deviation: float, margin: float, error: float = FIRST_ERROR) -> int | None:
    """Pairs with which the verdict is right with 80 % chance, wherever the true ratio lies.

    Right is equivalent for 1, better or worse from the margin on, and either between; these are
    the hardest at 1, at half the margin and at the margin. None: more than 1,000.
    """
    log_margin = math.log1p(margin)

    def enough(pairs: int) -> bool:
        log_error = log_deviation / math.sqrt(pairs)
        equal, between, apart = (
            chances(share * log_margin, log_margin, log_error, pairs - 1, 1 - error)
            for share in (0, 0.5, 1)
        )
        right = equal.equivalent, between.equivalent + between.higher, apart.higher
        return min(right) >= POWER

    return _fewest(enough) if log_deviation else fewest_pairs()


def _fewest(enough: Callable[[int], bool]) -> int | None:
    """The fewest pairs that are enough, where more of them are too."""
    pairs = bisect_left(range(MOST_PAIRS + 1), True, lo=fewest_pairs(), key=enough)
    return pairs if pairs <= MOST_PAIRS else None
