"""What happened to the requests of a phase: counts, errors by class, response times of good answers
and what they are made of, and how late the driver was.

Times are kept in buckets of 0.2 % width, so that workers can send theirs to the master: a
percentile is off by 0.1 % at most. (Locust's own are rounded to two significant digits.)
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from lib.timing import PARTS, Timing

ERROR_CLASSES = (
    "dial_timeout",
    "request_timeout",
    "reset",
    "refused",
    "http_4xx",
    "http_5xx",
    "other",
)
_COUNTERS = ("errors", "good", "slow", "late_starts", "late_ticks")
BODIES = 5  # samples of wrong answers that are kept
BODY_CHARACTERS = 200
_STEPS = 1024  # buckets per factor of two, half of them used: frexp gives 0.5 to 1


def bucket_of(seconds: float) -> int:
    """The bucket of a time; of nothing the bucket 0, which no other time has."""
    fraction, exponent = math.frexp(seconds)
    return exponent * _STEPS + int(fraction * _STEPS)


def _seconds(bucket: int) -> float:
    exponent, step = divmod(bucket, _STEPS)
    return math.ldexp((step + 0.5) / _STEPS, exponent) if bucket else 0.0


def seconds_at(times: Counter[int], ranks: Iterable[int]) -> list[float]:
    """Of times in buckets those with these ranks, counted from 1, in ascending order."""
    seconds, below, buckets = 0.0, 0, iter(sorted(times))
    found = []
    for rank in ranks:
        while below < rank:
            bucket = next(buckets)
            below, seconds = below + times[bucket], _seconds(bucket)
        found.append(seconds)
    return found


def error_class(status: int, error: BaseException) -> str:
    """The class of a failed attempt, by HTTP status or, where there is none, by the exception."""
    if status >= 400:
        return "http_5xx" if status >= 500 else "http_4xx"
    if isinstance(error, ConnectionRefusedError):
        return "refused"
    # Locust's client gives the same error for both; the wait to connect is in its duration.
    if isinstance(error, TimeoutError) or "timed out" in str(error):
        return "request_timeout"
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return "reset"
    return "reset" if type(error).__name__ == "HTTPConnectionClosed" else "other"


@dataclass
class Tally:
    """Counts of one phase, or of several added together. Times are seconds since 1970.

    `good`, `late_starts` and `late_ticks` count times by bucket: response times of good answers,
    how late the driver began requests that were due, and how late it was by its own clock.
    """

    requests: int = 0
    completed: int = 0
    completed_after: int = 0  # the window
    errors: Counter[str] = field(default_factory=Counter)
    good: Counter[int] = field(default_factory=Counter)
    good_bytes: int = 0
    good_seconds: float = 0.0
    longest_seconds: float = 0.0
    parts: list[float] = field(default_factory=lambda: [0.0] * len(PARTS))
    timed: int = 0  # good answers that have parts
    late_starts: Counter[int] = field(default_factory=Counter)
    late_ticks: Counter[int] = field(default_factory=Counter)
    slow: Counter[str] = field(default_factory=Counter)  # good answers above a limit, by objective
    late_answers: int = 0
    started: float = math.inf  # the first request
    last_user_started: float = -math.inf  # the first request of the user that came last
    ended: float = -math.inf  # the last answer
    bodies: list[str] = field(default_factory=list)

    def when(self, started: float, ended: float, *, first: bool) -> None:
        """Notes the time of a request, the user's `first` in this phase or not."""
        self.started = min(self.started, started)
        self.ended = max(self.ended, ended)
        if first:
            self.last_user_started = max(self.last_user_started, started)

    def answer(self, seconds: float, length: int, timing: Timing | None = None) -> None:
        """Counts a good answer of so many bytes, that took `seconds` from when it was due."""
        self.requests += 1
        self.completed += 1
        self.good[bucket_of(seconds)] += 1
        if timing is not None:
            self.timed += 1
            for part, spent in enumerate(timing.parts):
                self.parts[part] += spent
        self.good_bytes += length
        self.good_seconds += seconds
        self.longest_seconds = max(self.longest_seconds, seconds)

    def failure(self, status: int, error: BaseException) -> None:
        """Counts an attempt without a good answer; a status of 0 means without any."""
        self.requests += 1
        self.completed += status > 0
        self.errors[error_class(status, error)] += 1

    def keep_body(self, status: int, read: Callable[[], str | None]) -> None:
        """Keeps a wrong answer's status and beginning, if there are not enough different ones."""
        if len(self.bodies) < BODIES:
            self._keep(f"{status}: {(read() or '')[:BODY_CHARACTERS]}")

    def _keep(self, body: str) -> None:
        if body not in self.bodies and len(self.bodies) < BODIES:
            self.bodies.append(body)

    def add(self, other: "Tally") -> None:
        self.requests += other.requests
        self.completed += other.completed
        self.completed_after += other.completed_after
        self.errors.update(other.errors)
        self.good.update(other.good)
        self.good_bytes += other.good_bytes
        self.good_seconds += other.good_seconds
        self.longest_seconds = max(self.longest_seconds, other.longest_seconds)
        self.parts = [a + b for a, b in zip(self.parts, other.parts, strict=True)]
        self.timed += other.timed
        self.late_starts.update(other.late_starts)
        self.late_ticks.update(other.late_ticks)
        self.slow.update(other.slow)
        self.late_answers += other.late_answers
        self.started = min(self.started, other.started)
        self.last_user_started = max(self.last_user_started, other.last_user_started)
        self.ended = max(self.ended, other.ended)
        for body in other.bodies:
            self._keep(body)

    @property
    def start_spread_seconds(self) -> float:
        """From the first user's first request to the last user's; infinite without a request."""
        return abs(self.last_user_started - self.started)

    @property
    def failures(self) -> int:
        return self.errors.total()

    @property
    def success(self) -> float:
        """Share of good answers; not a number without a request."""
        return self.good.total() / self.requests if self.requests else math.nan

    def percentile_seconds(self, percentile: float, *, failures_as_infinite: bool) -> float:
        """Seconds by the nearest rank; infinite where a failure or no answer has that rank."""
        good = self.good.total()
        attempts = self.requests if failures_as_infinite else good
        rank = max(1, math.ceil(round(percentile / 100 * attempts, 6)))
        if rank > good:
            return math.inf
        return self.good_seconds_at([rank])[0]

    def good_seconds_at(self, ranks: Iterable[int]) -> list[float]:
        """Response times of good answers by ascending rank, from 1; exact for the slowest."""
        good, longest = self.good.total(), self.longest_seconds
        ranks = list(ranks)
        found = zip(ranks, seconds_at(self.good, ranks), strict=True)
        return [longest if rank == good else min(each, longest) for rank, each in found]

    def to_message(self) -> dict[str, Any]:
        """Plain data for Locust's messages."""
        return {**asdict(self), **{name: dict(getattr(self, name)) for name in _COUNTERS}}

    @classmethod
    def from_message(cls, data: dict[str, Any]) -> "Tally":
        return cls(**{**data, **{name: Counter(data[name]) for name in _COUNTERS}})
