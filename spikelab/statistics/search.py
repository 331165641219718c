"""The search for the highest rate that holds: which rate to try next, and what the answer is.

Both are functions of the judged steps so far and of nothing else, so a search that was interrupted
goes on from its steps. The course is Nighthawk's adaptive load controller's: grow exponentially
until a step fails, bisect, then confirm; here the rate one step above is confirmed as well.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from spikelab.objectives import Verdict, over_repeats

Outcome = Literal["found", "at least", "below", "inconclusive"]
_SIGNIFICANT_DIGITS = 3
_FINEST_PRECISION = 0.02
# Rates between the ends of an answer that cannot be decided: near a queue's capacity the requests
# of one step are too few independent ones.
_UNDECIDED = 2


@dataclass(frozen=True)
class Observation:
    """A judged step. `rate`: offered, requests a second, or what else is searched."""

    rate: float
    verdict: Verdict


@dataclass(frozen=True)
class Search:
    """How to search. Rates are in requests a second, or values of another parameter.

    `precision`: 0.05 bisects until fail / pass is at most 1.05. `confirmations`: how often both
    ends are tried again. `tries`: steps without a verdict after which a rate stays inconclusive.
    `whole`: only whole numbers are tried; two that follow each other are as close as can be.
    """

    first_rate: float
    lowest_rate: float
    highest_rate: float
    growth: float = 2.0
    precision: float = 0.05
    confirmations: int = 2
    tries: int = 2
    whole: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.lowest_rate <= self.first_rate <= self.highest_rate:
            raise ValueError("rates: 0 < lowest_rate <= first_rate <= highest_rate")
        if self.precision < _FINEST_PRECISION or self.growth < 1 + self.precision:
            raise ValueError(f"precision is at least {_FINEST_PRECISION}, growth above 1 + it")
        if self.confirmations < 0 or self.tries < 1:
            raise ValueError("confirmations are 0 or more, tries 1 or more")

    @property
    def widest(self) -> float:
        """Of an answer, fail / pass: two rates between that cannot be decided, a step to each."""
        return (1 + self.precision) ** (_UNDECIDED + 1)

    def apart(self, below: float, above: float) -> bool:
        """Whether there is a rate between the two that is worth a step."""
        return above / below > 1 + self.precision and not (self.whole and above - below <= 1)

    def wider(self, below: float | None, above: float | None) -> bool:
        """Whether the two are further apart than an answer may be."""
        if below is None or above is None:
            return False
        return above / below > self.widest and not (self.whole and above - below <= _UNDECIDED + 1)

    def rounded(self, rate: float) -> float:
        """The rate that is tried for this one."""
        short = float(f"{rate:.{_SIGNIFICANT_DIGITS}g}")
        return float(round(short)) if self.whole else short


@dataclass(frozen=True)
class Capacity:
    """The answer: [`highest_pass`, `lowest_fail`], both confirmed, else None.

    `found`: between the two. `at least`: the highest rate allowed passes. `below`: the lowest rate
    allowed fails. `inconclusive`: `reason` says why; confirmed ends are still given.
    """

    outcome: Outcome
    highest_pass: float | None
    lowest_fail: float | None
    reason: str | None = None


@dataclass(frozen=True)
class _Ends:
    """What the steps say of the capacity; None where there is no such rate.

    `low`: the highest rate that passes, every lower tested one passing too. `above_low`: the next
    tested one. `high`: the lowest that fails, every higher tested one failing too. `below_high`:
    the next lower tested one. What lies between `low` and `high` has no verdict, or another one
    than its place asks for.
    """

    low: float | None
    above_low: float | None
    high: float | None
    below_high: float | None


def counted(observations: Sequence[Observation]) -> Sequence[Observation]:
    """All but a first step that failed: a target that was just started is slow for some seconds.

    That rate is the next again, and what it then says counts.
    """
    cold = bool(observations) and observations[0].verdict == "fail"
    return observations[1:] if cold else observations


def next_rate(search: Search, observations: Sequence[Observation]) -> float | None:
    """The rate of the next step; None when the search is over."""
    observations = counted(observations)
    if not observations:
        return search.first_rate
    last, verdicts = observations[-1].rate, _by_rate(observations)
    if verdicts[last].count("inconclusive") == len(verdicts[last]) < search.tries:
        return last
    states = _states(search, verdicts)
    ends = _ends(states)
    outward = _outward(search, ends, states)
    if outward is not None:
        return outward
    if _hopeless(search, ends, states, observations):
        return None
    return _between(search, ends) or _to_confirm(search, ends, verdicts)


def answer(search: Search, observations: Sequence[Observation], unit: str = "") -> Capacity:
    """What the steps so far prove. Before `next_rate` is None the outcome is inconclusive.

    `unit`: what stands behind a rate in the reason.
    """
    verdicts = _by_rate(counted(observations))
    states = _states(search, verdicts)
    ends = _ends(states)

    def confirmed(rate: float | None) -> float | None:
        enough = rate is not None and _decided(verdicts[rate]) > search.confirmations
        return rate if enough else None

    low, high = confirmed(ends.low), confirmed(ends.high)
    if next_rate(search, observations) is not None:
        return Capacity("inconclusive", low, high, "the search is not over")
    if low and high and not search.wider(low, high):
        return Capacity("found", low, high)
    if low == search.highest_rate:
        return Capacity("at least", low, None)
    if high == search.lowest_rate:
        return Capacity("below", None, high)
    return Capacity("inconclusive", low, high, _why(counted(observations), states, unit))


def _outward(search: Search, ends: _Ends, states: Mapping[float, Verdict]) -> float | None:
    """The next rate below all that were tried while none passes, or above while none fails."""
    lowest, highest = min(states), max(states)
    if ends.low is None and lowest > search.lowest_rate:
        below = search.rounded(lowest / search.growth)
        return max(min(below, lowest - 1) if search.whole else below, search.lowest_rate)
    # What spoils two rates in a row, such as a driver at its limit, spoils higher ones too.
    top = [states[rate] for rate in sorted(states)[-2:]]
    if ends.high is None and highest < search.highest_rate and top != ["inconclusive"] * 2:
        above = search.rounded(highest * search.growth)
        return min(max(above, highest + 1) if search.whole else above, search.highest_rate)
    return None


def _hopeless(
    search: Search,
    ends: _Ends,
    states: Mapping[float, Verdict],
    observations: Sequence[Observation],
) -> bool:
    """Whether no more steps can make an answer of them: rates further apart than an answer may be
    contradict each other, or not even the lowest rate has a verdict."""
    failed, passed = _extremes(observations)
    return search.wider(failed, passed) or (ends.low is None and ends.high != min(states))


def _extremes(observations: Sequence[Observation]) -> tuple[float, float]:
    """The lowest rate that ever failed and the highest that ever passed."""
    failed = [step.rate for step in observations if step.verdict == "fail"]
    passed = [step.rate for step in observations if step.verdict == "pass"]
    return min(failed, default=math.inf), max(passed, default=0.0)


def _between(search: Search, ends: _Ends) -> float | None:
    """The middle of a gap that is too wide, next to the highest pass or the lowest fail."""
    for below, above in ((ends.low, ends.above_low), (ends.below_high, ends.high)):
        if below and above and search.apart(below, above):
            return search.rounded(math.sqrt(below * above))
    return None


def _to_confirm(
    search: Search, ends: _Ends, verdicts: Mapping[float, Sequence[Verdict]]
) -> float | None:
    """The end with fewer steps, the lower one first: taking turns shows a drift at one of them."""
    if search.wider(ends.low, ends.high):
        return None
    unsure = [
        rate
        for rate in (ends.low, ends.high)
        if rate is not None and _decided(verdicts[rate]) <= search.confirmations
    ]
    return min(unsure, key=lambda rate: _decided(verdicts[rate]), default=None)


def _why(observations: Sequence[Observation], states: Mapping[float, Verdict], unit: str) -> str:
    failed, passed = _extremes(observations)
    if passed >= failed:
        return f"{failed:g}{unit} failed and {passed:g}{unit} passed: the capacity drifts or varies"
    undecided = [rate for rate in sorted(states) if states[rate] == "inconclusive"]
    spoiled = ", ".join(f"{rate:g}{unit}" for rate in undecided)
    return f"no verdict at {spoiled}"


def _by_rate(observations: Sequence[Observation]) -> dict[float, list[Verdict]]:
    verdicts: dict[float, list[Verdict]] = {}
    for observation in observations:
        verdicts.setdefault(observation.rate, []).append(observation.verdict)
    return verdicts


def _states(search: Search, verdicts: Mapping[float, Sequence[Verdict]]) -> dict[float, Verdict]:
    """Each rate's verdict; none where too many of its steps have none."""
    return {
        rate: "inconclusive"
        if found.count("inconclusive") >= search.tries
        else over_repeats(found, needed=1)
        for rate, found in verdicts.items()
    }


def _decided(verdicts: Sequence[Verdict]) -> int:
    return len(verdicts) - verdicts.count("inconclusive")


def _ends(states: Mapping[float, Verdict]) -> _Ends:
    rates = sorted(states)
    passing = next((i for i, rate in enumerate(rates) if states[rate] != "pass"), len(rates))
    failing = next((i for i, rate in enumerate(rates[::-1]) if states[rate] != "fail"), len(rates))
    up, down = rates[passing:], rates[: len(rates) - failing]
    return _Ends(
        low=rates[passing - 1] if passing else None,
        above_low=up[0] if up else None,
        high=rates[-failing] if failing else None,
        below_high=down[-1] if down else None,
    )
