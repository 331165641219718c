"""The figures that comparisons know: how each is taken from a judged step, which way is better."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from spikelab.judge import with_drops
from spikelab.plans.studies import MetricName
from spikelab.record import QUANTILES, Latency, Step

Unit = Literal["s", "1/s", "share"]


@dataclass(frozen=True)
class Figure:
    """One metric. `of` gives its value in `unit`: infinite where failures reach it, None where
    the record does not have it."""

    about: str
    better: Literal["lower", "higher"]
    unit: Unit
    of: Callable[[Step], float | None]


def _percentile(key: str) -> Callable[[Step], float | None]:
    """A latency percentile with failures and drops as infinitely late, as objectives judge it."""

    def of(step: Step) -> float | None:
        printed = step.latency_with_failures_seconds.model_dump()
        lacking = _lacking(printed, step)
        if key in lacking:
            return None
        for name in reversed(QUANTILES):
            if name in lacking:
                # The next higher one stands for it, as `with_drops` has it.
                higher = [each for each, q in QUANTILES.items() if q > QUANTILES[name]]
                printed[name] = printed[higher[0]] if higher else None
        value = with_drops(Latency(**printed), step.requests, step.dropped)[key]
        return math.inf if value is None else value

    return of


def _lacking(printed: Mapping[str, float | None], step: Step) -> set[str]:
    """Percentiles that are null though good answers reach them: an imported report may not print
    all. Null is infinite else."""
    good = step.requests - step.failures
    return {
        name
        for name, quantile in QUANTILES.items()
        if printed[name] is None and math.ceil(round(quantile * step.requests, 6)) <= good
    }


def _failures(step: Step) -> float | None:
    """Failed and dropped requests, of all that were due."""
    due = step.requests + step.dropped
    return (step.failures + step.dropped) / due if due else None


_SECONDS = "of all requests were faster; a failed one counts as infinite"

# Success is compared as the share that failed: 99.9 % and 99 % are ten times apart in that, and
# within any margin as shares that succeeded.
FIGURES: dict[MetricName, Figure] = {
    "p50": Figure(f"half {_SECONDS}", "lower", "s", _percentile("p50")),
    "p90": Figure(f"90 % {_SECONDS}", "lower", "s", _percentile("p90")),
    "p95": Figure(f"95 % {_SECONDS}", "lower", "s", _percentile("p95")),
    "p99": Figure(f"99 % {_SECONDS}", "lower", "s", _percentile("p99")),
    "p99.9": Figure(f"99.9 % {_SECONDS}", "lower", "s", _percentile("p99_9")),
    "mean": Figure(
        "latency of the good answers", "lower", "s", lambda step: step.latency_mean_seconds
    ),
    "success": Figure("share that failed or was dropped", "lower", "share", _failures),
    "throughput": Figure(
        "answers a second, drain included", "higher", "1/s", lambda step: step.achieved_rate
    ),
    "goodput": Figure(
        "good answers within the objectives a second", "higher", "1/s", lambda step: step.goodput
    ),
}
