"""Service-level objectives: ``success >= 99.9%``, ``p95 < 1s``; judged on every attempt."""

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lib.plan import Plan, PlanError, seconds
from lib.tally import Tally

MISSED = 99  # k6's exit code of a run that was measured and missed its thresholds

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
# The grammar is the lab's: tests/data/objectives.json.
_SUCCESS = re.compile(rf"success\s*(>=?)\s*{_NUMBER}\s*(%?)")
_LATENCY = re.compile(rf"p(50|90|95|99|99\.9)\s*(<=?)\s*({_NUMBER}(?:ms|s|m))")
_LONGEST_SECONDS = seconds("24h")

# A drain that short is the last answers' own time.
_SHORT_DRAIN_SECONDS = 1.0


@dataclass(frozen=True)
class Objective:
    """`percentile` is None for the share of good answers; `limit` is a share or seconds."""

    text: str
    percentile: float | None
    compare: str
    limit: float

    def measured(self, tally: Tally) -> float:
        """A share, or seconds in which a failed request counts as infinite."""
        if self.percentile is None:
            return tally.success
        return tally.percentile_seconds(self.percentile, failures_as_infinite=True)

    def is_missed_by(self, seconds: float) -> bool:
        """Whether a good answer of so many seconds is above the limit of a percentile."""
        return self.percentile is not None and not _COMPARE[self.compare](seconds, self.limit)

    def holds(self, tally: Tally) -> bool:
        """By counts: of a percentile, whether so many requests were good and fast enough."""
        if self.percentile is None:
            return _COMPARE[self.compare](tally.success, self.limit)
        missed = tally.failures + tally.slow[self.text]
        return missed <= round((1 - self.percentile / 100) * tally.requests, 6)


def parse_objective(text: str) -> Objective:
    """An objective from its text. Raises PlanError that shows the form."""
    if match := _SUCCESS.fullmatch(text):
        compare, number, percent = match.groups()
        # Rounded, so that 99.9% and 0.999 are the same number.
        share = round(float(number) / 100, 12) if percent else float(number)
        if share > 1:
            raise PlanError(f'slo "{text}": success is at most 100% or 1')
        return Objective(text, None, compare, share)
    if match := _LATENCY.fullmatch(text):
        limit = seconds(match[3])
        if limit > _LONGEST_SECONDS:
            raise PlanError(f'slo "{text}": a limit is at most a day')
        return Objective(text, float(match[1]), match[2], limit)
    raise PlanError(f'slo "{text}": not understood; write it like "success >= 99.9%" or "p95 < 1s"')


def objectives_by_phase(plan: Plan, script: str, given: str) -> dict[str, list[Objective]]:
    """The phase's own objectives or the plan's, or those that were given, separated by commas; a
    run by hand has one phase, its script. Raises PlanError."""
    texts = [text.strip() for text in given.split(",") if text.strip()]
    own = {each.name: each.slo for each in plan.phases} or {script: None}
    return {
        # Each once: its slow answers are counted by its text.
        name: [
            parse_objective(text)
            for text in dict.fromkeys(texts or (plan.slo if slo is None else slo))
        ]
        for name, slo in own.items()
    }


def spare_seconds(objectives: Sequence[Objective]) -> float:
    """How long after the last request is due a good answer may come; a later one shows a queue.
    Infinite without a latency limit."""
    limits = [each.limit for each in objectives if each.percentile is not None]
    return max(_SHORT_DRAIN_SECONDS, *limits) if limits else math.inf


def missed(objectives: Sequence[Objective], tally: Tally) -> list[Objective]:
    """The objectives that do not hold; a run without a request misses all of them."""
    return [each for each in objectives if not tally.requests or not each.holds(tally)]
