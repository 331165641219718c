"""The load drivers, one module each, and the process they run in."""

# - What a driver says of a run at its end, in one shape for every driver.
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from spikelab.plans.model import DriverName, Phase, Plan
from spikelab.results.run import Errors, Latency
from spikelab.settings import Endpoints
from spikelab.stack.base import DriverCommand, Runtime


@dataclass(frozen=True)
class Job:
    """One run as a driver needs to know it: `url` is the target's, `sees` are the addresses of the
    stack, both from where the driver runs."""

    plan: Plan
    testid: str
    url: str
    sees: Endpoints
    sinks: Sequence[str]
    live: bool


class PhaseSummary(BaseModel):
    """Exact counts, and the driver's own exact percentiles; durations in seconds.

    `requests` begun, `completed` answers of any kind, `failures` those without a good answer.
    `begun`: when the phase's event begins. `started`, `ended`: first start and last answer; where
    nothing was started both are `begun`. `slow`, `late_answers`: as in `record.Step`.
    """

    model_config = ConfigDict(extra="forbid")

    name: str
    begun: datetime
    started: datetime
    ended: datetime
    requests: int
    completed: int
    failures: int
    dropped: int
    errors: Errors
    slow: dict[str, int]
    late_answers: int | None
    latency_seconds: Latency
    latency_mean_seconds: float | None
    latency_with_failures_seconds: Latency
    start_spread_seconds: float | None
    response_bytes_mean: float | None


class Driver(Protocol):
    """What the rest of the lab asks of a driver."""

    @property
    def name(self) -> DriverName:
        """`k6` or `locust`."""

    @property
    def summary_file(self) -> str:
        """Where in the run's folder it leaves its figures."""

    def command(self, runtime: Runtime, job: Job) -> DriverCommand:
        """The process that runs the plan's script."""

    def version(self, runtime: Runtime, testid: str) -> str:
        """What it calls its version."""

    def why_failed(self, code: int, log: Path) -> str | None:
        """One line on a run that it did not finish; None for an exit code of a valid run."""

    def remove_secrets(self, folder: Path) -> None:
        """Takes out of its files what nobody but the driver was to see, however it ended."""

    def read_summary(self, folder: Path, phases: Sequence[Phase]) -> list[PhaseSummary]:
        """Its figures of these phases. Raises LabError when they are not there."""


def from_epoch_ms(milliseconds: float) -> datetime:
    """UTC from milliseconds since 1970."""
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)
