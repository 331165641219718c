"""A run as its driver gets it, and what every driver says of it at its end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from spikelab.errors import LabError
from spikelab.machine import Cores
from spikelab.plans.model import DriverName, Phase, Plan
from spikelab.plans.parameters import PROXY_PREFIX
from spikelab.results.experiment import CellState
from spikelab.results.run import Errors, Latency, LatencyParts, Lateness
from spikelab.settings import Endpoints, SettingValue
from spikelab.stack.base import DriverCommand, Runtime
from spikelab.stack.builds import TargetBuild
from spikelab.statistics.distribution import Distribution
from spikelab.stores import InfluxDB, Prometheus, Stores


@dataclass
class Run:
    """One run, as all that prepares, drives, watches or measures it needs to know it.

    `plan`: with the values and the url of its cell, its phases in the order of the cell's repeat.
    `settings`: all of the lab's own target, none for another; `build`: the target's (None: the
    lab's own); `cores`: of driver and target (None: they share all); `fresh`: it begins with a
    restart of the target, whatever runs. `hosts`: the address of each target with a name, by
    `name:port`. `stores`: those without which it is no result, of which
    `gone` went away. `live`: k6 serves a dashboard of its own.
    """

    testid: str
    plan: Plan
    cell: CellState
    runtime: Runtime
    settings: Mapping[str, SettingValue]
    labels: Mapping[str, str]
    stores: Stores
    experiment: str | None = None
    build: TargetBuild | None = None
    cores: Cores | None = None
    fresh: bool = False
    hosts: Mapping[str, str] = field(default_factory=dict)
    live: bool = False
    gone: list[str] = field(default_factory=list)

    @property
    def own_target(self) -> bool:
        """Whether the load is on the lab's own target."""
        return not self.plan.foreign_urls

    @cached_property
    def endpoints(self) -> Endpoints:
        """Addresses as this machine sees them."""
        return self.runtime.endpoints()

    @cached_property
    def driver_endpoints(self) -> Endpoints:
        """Addresses as the driver sees them."""
        return self.runtime.driver_endpoints()

    @cached_property
    def prometheus(self) -> Prometheus:
        """Where its series are."""
        return Prometheus(self.endpoints.prometheus)

    @cached_property
    def influxdb(self) -> InfluxDB | None:
        """Where its phases, its history and raw samples are kept, if it is running."""
        return InfluxDB(self.endpoints.influxdb) if self.endpoints.influxdb else None

    @cached_property
    def sinks(self) -> list[str]:
        """Where the driver sends its figures: the plan's sinks that are there."""
        return [sink for sink in self.plan.effective_sinks if sink != "influxdb" or self.influxdb]

    @property
    def url(self) -> str:
        """The target's, as the driver sees it. Raises LabError where it is a proxy that is down."""
        return resolved_url(self.plan.target.url, self.driver_endpoints)


def resolved_url(url: str | None, seen: Endpoints) -> str:
    """A plan's url as an address; without one, the lab's own target."""
    if url is None:
        return seen.target
    if not url.startswith(PROXY_PREFIX):
        return url
    if seen.proxy is None:
        raise LabError("the proxy is not running: ./lab up --with proxy")
    return seen.proxy[url.removeprefix(PROXY_PREFIX)]


class PhaseSummary(BaseModel):
    """Exact counts, and the distribution of response times; durations in seconds.

    `requests` begun, `completed` answers of any kind, `failures` those without a good answer.
    `begun`: when the phase's event begins. `started`, `ended`: first start and last answer; where
    nothing was started both are `begun`. `latency`: of good answers, as are its mean and its parts,
    which are None where some are of requests that a script sent without the lab's library.
    `completed_in_window`: answers of any kind before the end of the phase (and its jitter); None of
    a spike. `slow`, `late_answers`, `lateness`: as in `results.run.Step`.
    `http_req_duration_seconds`: k6's own.
    """

    model_config = ConfigDict(extra="forbid")

    name: str
    begun: datetime
    started: datetime
    ended: datetime
    requests: int
    completed: int
    completed_in_window: int | None
    failures: int
    dropped: int
    errors: Errors
    slow: dict[str, int]
    late_answers: int | None
    latency: Distribution
    latency_mean_seconds: float | None
    latency_parts_seconds: LatencyParts | None
    lateness: Lateness | None
    start_spread_seconds: float | None
    response_bytes_mean: float | None
    http_req_duration_seconds: Latency | None = None


class Driver(Protocol):
    """What the rest of the lab asks of a driver."""

    @property
    def name(self) -> DriverName:
        """`k6` or `locust`."""

    @property
    def summary_file(self) -> str:
        """Where in the run's folder it leaves its figures."""

    def command(self, run: Run) -> DriverCommand:
        """The process that runs the plan's script."""

    def version(self, run: Run) -> str:
        """What it calls its version."""

    def why_failed(self, code: int, log: Path) -> str | None:
        """One line on a run that it did not finish; None for an exit code of a valid run."""

    def read_summary(self, folder: Path, phases: Sequence[Phase]) -> list[PhaseSummary]:
        """Its figures of these phases. Raises LabError when they are not there."""


def from_epoch_ms(milliseconds: float) -> datetime:
    """UTC from milliseconds since 1970."""
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)
