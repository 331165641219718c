"""The load drivers, one module each, and the process they run in."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from spikelab.drivers.summary import PhaseSummary
from spikelab.plans.model import Plan
from spikelab.plans.scripts import DriverName
from spikelab.runtime import DriverCommand, Endpoints, Runtime


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

    def read_summary(self, folder: Path, plan: Plan) -> list[PhaseSummary]:
        """Its figures of the phases. Raises LabError when they are not there."""
