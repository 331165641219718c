"""What happened to the requests of a phase: counts, errors by class, latency of good answers.

Latencies are kept in buckets of 0.2 % width, so that workers can send theirs to the master:
a percentile is off by 0.1 % at most. (Locust's own are rounded to two significant digits.)
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

ERROR_CLASSES = (
    "dial_timeout",
    "request_timeout",
    "reset",
    "refused",
    "http_4xx",
    "http_5xx",
    "other",
)
_COUNTERS = ("errors", "good", "slow")
BODIES = 5  # samples of wrong answers that are kept
BODY_CHARACTERS = 200
_STEPS = 1024  # buckets per factor of two, half of them used: frexp gives 0.5 to 1


def _bucket(seconds: float) -> int:
    fraction, exponent = math.frexp(seconds)
    return exponent * _STEPS + int(fraction * _STEPS)


def _seconds(bucket: int) -> float:
    exponent, step = divmod(bucket, _STEPS)
    return math.ldexp((step + 0.5) / _STEPS, exponent)


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
    """Counts of one phase, or of several added together. Times are seconds since 1970."""

    requests: int = 0
    completed: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    good: Counter[int] = field(default_factory=Counter)
    good_bytes: int = 0
    good_seconds: float = 0.0
    longest_seconds: float = 0.0
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

    def answer(self, seconds: float, length: int) -> None:
        """Counts a good answer of so many bytes."""
        self.requests += 1
        self.completed += 1
        self.good[_bucket(seconds)] += 1
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
        self.errors.update(other.errors)
        self.good.update(other.good)
        self.good_bytes += other.good_bytes
        self.good_seconds += other.good_seconds
        self.longest_seconds = max(self.longest_seconds, other.longest_seconds)
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
        if rank == good:
            return self.longest_seconds
        for bucket in sorted(self.good):
            rank -= self.good[bucket]
            if rank <= 0:
                break
        return _seconds(bucket)

    def to_message(self) -> dict[str, Any]:
        """Plain data for Locust's messages."""
        return {**asdict(self), **{name: dict(getattr(self, name)) for name in _COUNTERS}}

    @classmethod
    def from_message(cls, data: dict[str, Any]) -> "Tally":
        return cls(**{**data, **{name: Counter(data[name]) for name in _COUNTERS}})
