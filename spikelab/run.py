"""One run from its plan to its record: prepare, drive, measure, judge, save."""

import secrets
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from spikelab import measure, paths
from spikelab.console import say, warn
from spikelab.drivers import k6
from spikelab.drivers.k6_summary import read_summary
from spikelab.drivers.process import DriverProcess
from spikelab.drivers.summary import PhaseSummary
from spikelab.errors import END_SIGNALS, LabError, RunInterruptedError
from spikelab.events import mark_aborted
from spikelab.host_facts import host_record
from spikelab.judge import generator_limited, judge_run, spoiled
from spikelab.plan import Plan
from spikelab.progress import RunProgress
from spikelab.record import (
    ConnectionPolicy,
    Connections,
    Generator,
    RunRecord,
    TargetRecord,
    now,
    write_json,
)
from spikelab.runtime import Endpoints, Runtime
from spikelab.stack_settings import DATABASE
from spikelab.steps import build_step
from spikelab.stores.influxdb import InfluxDB
from spikelab.stores.prometheus import Prometheus
from spikelab.stores.samples import step_waves
from spikelab.target_settings import Value
from spikelab.target_view import Capacity, TargetView, prepare_target


@dataclass(frozen=True)
class RunOptions:
    """What the command line adds to a plan."""

    labels: Mapping[str, str] = field(default_factory=dict)
    target_settings: Mapping[str, str] = field(default_factory=dict)
    live: bool = False
    own_target_elsewhere: bool = False


@dataclass(frozen=True)
class Cell:
    """One run of a plan: its variant, all its target settings, its repeat, its experiment."""

    variant: str | None
    settings: Mapping[str, Value]
    repeat: int
    experiment: str | None


class Run:
    """One cell of a plan, to be run once."""

    def __init__(self, runtime: Runtime, plan: Plan, options: RunOptions, cell: Cell) -> None:
        self.runtime = runtime
        self.plan = plan
        self.options = options
        self.cell = cell
        self.testid = identity(plan.name)
        self.own_target = not plan.foreign_urls
        self.endpoints = runtime.endpoints()
        self.prometheus = Prometheus(self.endpoints.prometheus)
        self.sinks = self._sinks()
        self.view: TargetView | None = None
        self.capacity: Capacity | None = None

    def go(self) -> RunRecord:
        """Runs it and returns its saved record.

        Raises LabError when it could not be run, RunInterruptedError when the user stopped it;
        a record that was begun is closed in both cases.
        """
        if self.own_target:
            self.view = prepare_target(self.runtime, self.cell.settings)
            self.capacity = self.view.capacity()
            self._warn_about_accept_count()
        record = self._new_record()
        try:
            record.save()
            say(f"run {self.testid}")
            self._drive(record)
        except KeyboardInterrupt as error:
            with _uninterrupted():
                self._abort(record, "interrupted by the user")
            raise RunInterruptedError(
                f"interrupted: {paths.shown(record.folder / 'run.json')} is closed as incomplete"
            ) from error
        except Exception as error:
            self._abort(record, str(error))
            raise
        return record

    def _sinks(self) -> list[str]:
        if "influxdb" in self.plan.sinks and self.endpoints.influxdb is None:
            warn("InfluxDB is not running: this run keeps no raw samples, so it shows no waves")
            return [sink for sink in self.plan.sinks if sink != "influxdb"]
        return list(self.plan.sinks)

    def _warn_about_accept_count(self) -> None:
        if self.capacity and self.capacity.accept_queue_limit < self.capacity.accept_count:
            warn(
                f"accept-count {self.capacity.accept_count} is effectively "
                f"{self.capacity.accept_queue_limit}: net.core.somaxconn limits it"
            )

    def _new_record(self) -> RunRecord:
        own = self.own_target
        image, build = self.runtime.target_build() if own else (None, None)
        return RunRecord(
            testid=self.testid,
            plan=self.plan.name,
            labels=dict(self.options.labels),
            driver=self.plan.driver,
            started=now(),
            reasons=["still running"],
            experiment=self.cell.experiment,
            sinks=self.sinks,
            target=TargetRecord(
                url=_without_credentials(self.plan.target.url or self.endpoints.target),
                settings=dict(self.cell.settings),
                effective=self.view.effective_settings() if self.view else {},
                runtime=self.runtime.name if own else None,
                image=image,
                build=build,
            ),
            connections=Connections(policy=self._policy()),
            host=host_record(),
        )

    def _policy(self) -> ConnectionPolicy:
        return "keep-alive" if self.plan.request.keep_alive else "close"

    def _drive(self, record: RunRecord) -> None:
        overflows = self.view.listen_overflows() if self.view else None
        born = self.view.start_time() if self.view else None
        driver_sees = self.runtime.driver_endpoints()
        plan_file = record.folder / "plan.json"
        # The driver alone reads it: headers may hold a token.
        write_json(plan_file, self._resolved_plan(driver_sees), mode=0o600)
        command = k6.command(
            self.runtime, self.plan.script, self.testid, driver_sees, self.sinks, self.options.live
        )
        if self.options.live:
            say(f"k6's own dashboard: {k6.DASHBOARD_URL}")
        record.started = now()
        process = DriverProcess(command, record.folder / "k6.log")
        try:
            code = self._watch(process)
        except BaseException:
            with _uninterrupted():
                process.stop()
                self._measure_generator(record, process)
            raise
        record.ended = now()
        if code not in k6.VALID_EXITS:
            raise LabError(k6.explain_exit(code, record.folder / "k6.log"))
        self._measure_generator(record, process)
        names = [phase.name for phase in self.plan.phases]
        phases = read_summary(record.folder / k6.SUMMARY, names)
        self._measure(record, phases, overflows, born)

    def _resolved_plan(self, driver_sees: Endpoints) -> dict[str, object]:
        """The hand-over to a driver's script (LAB_PLAN); see docs/plans.md."""
        resolved = self.plan.model_dump(mode="json", include={"driver", "request", "phases", "slo"})
        events = None
        if driver_sees.influxdb:
            events = {"url": driver_sees.influxdb, "database": DATABASE}
        return {
            "schema": 1,
            "testid": self.testid,
            "plan": self.plan.name,
            "target": {"url": self.plan.target.url or driver_sees.target},
            **resolved,
            "events": events,
        }

    def _watch(self, process: DriverProcess) -> int:
        sockets = f"{self.endpoints.sockets}/metrics" if self.view else None
        phase = self.plan.phases[0].name
        with RunProgress(self.testid, phase, self.plan.users, self.prometheus, sockets) as bar:
            return process.wait(bar.tick)

    def _measure_generator(self, record: RunRecord, process: DriverProcess) -> None:
        cores = process.usage.cores
        record.generator = Generator(
            cpu=None if cores is None else round(cores, 3),
            memory_bytes=process.usage.memory_bytes or None,
            limited=generator_limited(cores, record.host.cpus),
            versions={"k6": k6.version(self.runtime, self.testid)},
        )

    def _measure(
        self,
        record: RunRecord,
        phases: list[PhaseSummary],
        overflows: int | None,
        born: float | None,
    ) -> None:
        assert record.ended is not None
        reasons = [
            reason
            for asked, happened in zip(self.plan.phases, phases, strict=True)
            for reason in spoiled(asked, happened)
        ]
        record.steps = [
            build_step(phase, self.plan, self.cell.variant, self.cell.repeat, record.generator)
            for phase in phases
        ]
        influxdb = self.endpoints.influxdb if "influxdb" in self.sinks else None
        if influxdb:
            with _as_warning("this run's record lacks its waves"):
                for step in record.steps:
                    step.waves = step_waves(InfluxDB(influxdb), self.testid, step)
        measure.settle(record.ended)
        if self.view:
            if self.view.start_time() != born:
                reasons.append("the target died or was restarted during the run")
            with _as_warning("this run's record lacks connections and queue waits"):
                self._measure_target(record, self.view, overflows, born)
        self._close(record, reasons)

    def _measure_target(
        self, record: RunRecord, view: TargetView, overflows: int | None, born: float | None
    ) -> None:
        assert record.ended is not None
        record.connections = measure.connections(
            self.prometheus,
            record.started,
            record.ended,
            self.capacity,
            view.listen_overflows() - (overflows or 0),
            self.plan.request.keep_alive,
        )
        record.queue_wait_seconds = measure.queue_wait(
            self.prometheus, record.started, record.ended, born
        )

    def _abort(self, record: RunRecord, reason: str) -> None:
        self._close(record, [reason])
        assert record.ended is not None
        if self.endpoints.influxdb:
            mark_aborted(InfluxDB(self.endpoints.influxdb), self.testid, record.ended)

    def _close(self, record: RunRecord, reasons: Sequence[str]) -> None:
        record.ended = record.ended or now()
        record.reasons = list(reasons)
        record.valid = not reasons
        record.verdict = judge_run(record.valid, record.steps)
        record.save()


def identity(plan: str) -> str:
    """`<utc>-<plan>-<4 hex>`: sorts by time."""
    return f"{now():%Y%m%dT%H%M%SZ}-{plan}-{secrets.token_hex(2)}"


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


@contextmanager
def _as_warning(consequence: str) -> Iterator[None]:
    """A store that does not answer takes its own figures away, not the driver's."""
    try:
        yield
    except LabError as error:
        warn(f"{error}; {consequence}")


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """While the lab tidies up, a second Ctrl-C waits; what it does here is bounded."""
    previous = {number: signal.signal(number, signal.SIG_IGN) for number in END_SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
