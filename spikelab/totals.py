"""A run's figures over all of its judged steps."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from spikelab.record import Latency, Step


@dataclass(frozen=True)
class Totals:
    """Counts added up; `latency` (seconds, of good answers) has each percentile's highest, as
    percentiles cannot be averaged. `achieved_rate`: completed a second of the time in which steps
    ran, pauses left out. None: not measured."""

    requests: int
    completed: int
    failures: int
    dropped: int
    achieved_rate: float | None
    latency: Latency

    @classmethod
    def of(cls, steps: Sequence[Step]) -> Self:
        """The totals of a run's steps, of which there is at least one."""
        seconds = _seconds_under_load(steps)
        completed = sum(step.completed for step in steps)
        return cls(
            requests=sum(step.requests for step in steps),
            completed=completed,
            failures=sum(step.failures for step in steps),
            dropped=sum(step.dropped for step in steps),
            achieved_rate=completed / seconds if seconds else None,
            latency=_worst(step.latency_seconds for step in steps),
        )

    @property
    def success(self) -> float | None:
        """See success_share."""
        return success_share(self.requests, self.failures, self.dropped)


def success_share(requests: int, failures: int, dropped: int) -> float | None:
    """The share of the requests that were due, dropped ones included, that got a good answer
    (docs/judging.md); None where none was due."""
    due = requests + dropped
    return (requests - failures) / due if due else None


def _seconds_under_load(steps: Sequence[Step]) -> float:
    seconds, until = 0.0, -math.inf
    for step in sorted(steps, key=lambda step: step.started):
        started, ended = step.started.timestamp(), step.ended.timestamp()
        seconds += max(0.0, ended - max(started, until))
        until = max(until, ended)
    return seconds


def _worst(latencies: Iterable[Latency]) -> Latency:
    columns: dict[str, list[float]] = {}
    for latency in latencies:
        for name, seconds in latency.model_dump(exclude_none=True).items():
            columns.setdefault(name, []).append(seconds)
    return Latency(**{name: max(seconds) for name, seconds in columns.items()})
