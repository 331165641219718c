"""A against B over interleaved pairs of runs: better, worse, equivalent or inconclusive."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from scipy.stats import binomtest

from spikelab.errors import UsageError
from spikelab.statistics import CONFIDENCE, Answer
from spikelab.statistics.holm import holm
from spikelab.statistics.ratio import Ratio, ratio_of

# One figure of A's run and B's run. None: not measured. Infinite: failures count so.
Pair = tuple[float | None, float | None]

_DIFFERENCE_LEVEL = 1 - CONFIDENCE
# Both ends of the 95 % interval inside the margin: each of the two one-sided tests at 2.5 %.
_EQUIVALENCE_LEVEL = _DIFFERENCE_LEVEL / 2


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
class Comparison:
    """B against A in one metric. `verdict` is about B.

    `ratio` is B / A; None where some figure has no ratio, and `difference_p` is then a sign
    test's. Both p values are Holm's adjusted ones for a secondary metric; `ratio`'s interval is
    never adjusted. `left_out` numbers the pairs (from 1) that lack a figure; `reason` says in one
    line what kept the verdict from the usual way.
    """

    metric: Metric
    verdict: Answer
    ratio: Ratio | None
    difference_p: float
    equivalence_p: float
    left_out: tuple[int, ...] = ()
    reason: str | None = None


@dataclass(frozen=True)
class _Evidence:
    """What the pairs say before several metrics are looked at together."""

    ratio: Ratio | None
    b_is_higher: bool
    difference_p: float
    equivalence_p: float
    left_out: tuple[int, ...]
    reason: str | None


def fewest_pairs(metrics: int = 1) -> int:
    """The pairs from which on a test without any assumed distribution can decide.

    With k pairs that all point one way, the exact sign-flip test has p = 2 / 2^k, its floor
    (Fisher, The Design of Experiments, 1935, § 21): 6 pairs for one metric, 7 for the first of
    two by Holm, 11 of 40. The t interval has no such floor, but with fewer pairs it would stand on
    its assumption of normal log-ratios alone.
    """
    return math.ceil(1 + math.log2(metrics / _DIFFERENCE_LEVEL))


def require_pairs(pairs: int) -> None:
    """Refuses a comparison that could not decide. Raises UsageError with the number needed."""
    if pairs < fewest_pairs():
        raise UsageError(
            f"repeats: {pairs} cannot decide a comparison: it needs at least {fewest_pairs()}"
            f" pairs (repeats: {fewest_pairs()})"
        )


def compare(
    primary: Metric, secondary: Sequence[Metric], pairs: Mapping[str, Sequence[Pair]]
) -> list[Comparison]:
    """The verdicts, the primary metric's first.

    `pairs`: of each metric's name, the figures of A and B in each pair of runs. The primary
    metric has the whole 5 % for itself, the secondary ones share another 5 % by Holm.
    Raises UsageError for too few pairs, ValueError for a figure that is negative or not a number.
    """
    for metric in (primary, *secondary):
        require_pairs(len(pairs[metric.name]))
    first = _evidence(primary, pairs[primary.name])
    rest = [_evidence(metric, pairs[metric.name]) for metric in secondary]
    adjusted = zip(
        holm([evidence.difference_p for evidence in rest]),
        holm([evidence.equivalence_p for evidence in rest]),
        strict=True,
    )
    return [
        _comparison(primary, first, first.difference_p, first.equivalence_p),
        *(
            _comparison(metric, evidence, *p_values)
            for metric, evidence, p_values in zip(secondary, rest, adjusted, strict=True)
        ),
    ]


def _evidence(metric: Metric, pairs: Sequence[Pair]) -> _Evidence:
    measured = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not all(figure >= 0 for pair in measured for figure in pair):
        raise ValueError(f"{metric.name}: a figure is negative or not a number: {measured}")
    left_out = tuple(number for number, pair in enumerate(pairs, 1) if None in pair)
    if len(measured) < fewest_pairs():
        reason = f"only {len(measured)} pairs have both figures: {fewest_pairs()} are needed"
        return _Evidence(_ratio(measured), False, 1.0, 1.0, left_out, reason)
    ratio = _ratio(measured)
    if ratio is None:
        return _sign_test(measured, left_out)
    p_values = ratio.difference_p, ratio.equivalence_p(metric.margin)
    return _Evidence(ratio, ratio.mean > 1, *p_values, left_out, None)


def _ratio(measured: Sequence[tuple[float, float]]) -> Ratio | None:
    """None where a figure is zero or infinite: leaving such pairs out would flatter one side."""
    if len(measured) < 2 or not all(0 < figure < math.inf for pair in measured for figure in pair):
        return None
    return ratio_of([b / a for a, b in measured])


def _sign_test(measured: Sequence[tuple[float, float]], left_out: tuple[int, ...]) -> _Evidence:
    """Zero and infinity have no ratio, but an order: exact two-sided sign test, ties left out.

    Source: Dixon and Mood, The statistical sign test, JASA 41 (1946). It never says equivalent.
    """
    higher = sum(b > a for a, b in measured)
    lower = sum(b < a for a, b in measured)
    p = float(binomtest(higher, higher + lower).pvalue) if higher + lower else 1.0
    reason = f"a figure is zero or infinite, so only order counts: B above A in {higher}"
    reason += f" pairs, below in {lower}, the same in {len(measured) - higher - lower}"
    return _Evidence(None, higher > lower, p, 1.0, left_out, reason)


def _comparison(
    metric: Metric, evidence: _Evidence, difference_p: float, equivalence_p: float
) -> Comparison:
    verdict: Answer = "inconclusive"
    # First: a difference that is certain and certainly too small to matter is none.
    if equivalence_p <= _EQUIVALENCE_LEVEL:
        verdict = "equivalent"
    elif difference_p <= _DIFFERENCE_LEVEL:
        verdict = "better" if evidence.b_is_higher == (metric.better == "higher") else "worse"
    return Comparison(
        metric,
        verdict,
        evidence.ratio,
        difference_p,
        equivalence_p,
        evidence.left_out,
        evidence.reason,
    )
