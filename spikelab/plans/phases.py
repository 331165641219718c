"""The load of a plan: its target, its one request, and its phases."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from spikelab.plans.values import (
    Duration,
    Objectives,
    PhaseName,
    Scalar,
    Strict,
    Url,
    a_second_or_more,
    above_zero,
    below_an_hour,
)
from spikelab.units import parse_duration


class Target(Strict):
    """Where the load goes: without a url, the lab's own target with these settings."""

    url: Url | None = None
    settings: dict[str, Scalar] = {}


class Request(Strict):
    """The one request that a virtual user makes."""

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    path: Annotated[str, Field(pattern="^/")] = "/"
    headers: dict[str, str] = {}
    body: str | None = None
    timeout: Annotated[Duration, AfterValidator(below_an_hour)] = "60s"
    keep_alive: bool = True


_Amount = Field(gt=0, le=1_000_000)
# Of each type by itself, so that the published schema has the limits.
Amount = Annotated[int, _Amount] | Annotated[float, _Amount]


class Phase(Strict):
    """A stretch of load. One that is not judged, such as a warm-up, is no step of the record.

    `rate`: an open loop of `value` requests a second. `users`: a closed loop of so many users; in a
    spike all at once and one request each, and `duration` is then the longest they may take.
    `jitter`: each request of a rate begins up to so much later than due, at random.
    """

    name: PhaseName
    kind: Literal["users", "rate"]
    value: Amount
    start: Duration | None = None
    duration: Annotated[Duration, AfterValidator(a_second_or_more)]
    url: Url | None = None
    ramp_up: Duration | None = None
    period: Annotated[Duration, AfterValidator(above_zero)] | None = None
    body_bytes: Annotated[int, Field(ge=0, le=10_000_000)] | None = None
    most_users: Annotated[int, Field(ge=1)] | None = None
    jitter: Duration | None = None
    slo: Objectives | None = None
    judged: bool = True

    @model_validator(mode="after")
    def _kind_and_keys_agree(self) -> Self:
        if self.kind == "users":
            if self.value != int(self.value):
                raise ValueError(f"value {self.value}: users are a whole number")
            self.value = int(self.value)
            if self.most_users or self.jitter:
                raise ValueError("most_users and jitter belong to the kind rate")
            if parse_duration(self.ramp_up or "0s") > self.duration_seconds:
                raise ValueError("ramp_up is longer than the phase's duration")
        elif self.ramp_up or self.period:
            raise ValueError("ramp_up and period belong to the kind users")
        elif self.jitter_seconds > self.duration_seconds:
            raise ValueError("jitter is longer than the phase's duration")
        return self

    @property
    def start_seconds(self) -> float:
        """Since the start of the run; a plan has filled it in."""
        return parse_duration(self.start or "0s")

    @property
    def duration_seconds(self) -> float:
        return parse_duration(self.duration)

    @property
    def jitter_seconds(self) -> float:
        """How much later than due a request may start, at random."""
        return parse_duration(self.jitter or "0s")

    @property
    def users(self) -> int:
        """Virtual users that it may take."""
        return self.most_users or int(self.value)


def in_order(phases: list[Phase]) -> list[Phase]:
    """A phase without a start follows the one before it."""
    end = 0.0
    for phase in phases:
        if phase.start is None:
            phase.start = f"{round(end, 3):.10g}s"
        end = phase.start_seconds + phase.duration_seconds
    return phases
