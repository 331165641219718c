"""One run from its plan to its record: prepare, drive, measure, judge, save."""

import secrets
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit

import psutil

from spikelab import paths
from spikelab.console import say, warn
from spikelab.drivers import Job
from spikelab.drivers.choice import driver_of
from spikelab.drivers.k6 import DASHBOARD_URL
from spikelab.drivers.process import DriverProcess
from spikelab.errors import END_SIGNALS, LabError, RunInterruptedError
from spikelab.events import mark_aborted
from spikelab.experiments.cells import Cell
from spikelab.history import write_history
from spikelab.host_facts import host_record
from spikelab.judge import generator_limited, judge_run
from spikelab.live import LiveRun
from spikelab.measure import Baseline, RunFigures
from spikelab.plans.model import Plan
from spikelab.plans.values import PROXY_PREFIX
from spikelab.prediction.of_run import fill_prediction
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
from spikelab.runtime import Endpoints, RunningBuild, Runtime
from spikelab.series import keep_series
from spikelab.stack_settings import DATABASE
from spikelab.stores.gaps import await_beat
from spikelab.stores.influxdb import InfluxDB
from spikelab.stores.prometheus import Prometheus
from spikelab.stores.watch import Stores
from spikelab.target_view import Capacity, TargetView, prepare_target
from spikelab.usage import Usage


@dataclass(frozen=True)
class RunOptions:
    """What the command line adds to a plan."""

    labels: Mapping[str, str] = field(default_factory=dict)
    target_settings: Mapping[str, str] = field(default_factory=dict)
    live: bool = False
    own_target_elsewhere: bool = False


class Run:
    """One cell of a plan, to be run once."""

    def __init__(
        self, runtime: Runtime, plan: Plan, options: RunOptions, cell: Cell, stores: Stores
    ) -> None:
        """`stores`: those without which it is no result; `gone` are those that it lost."""
        self.runtime = runtime
        self.stores = stores
        self.gone: list[str] = []
        self.options = options
        self.cell = cell
        self.plan = plan.model_copy(update={"phases": plan.phases_of(cell.repeat)})
        self.driver = driver_of(plan.driver)
        self.testid = identity(plan.name)
        self.own_target = not plan.foreign_urls
        self.endpoints = runtime.endpoints()
        self.prometheus = Prometheus(self.endpoints.prometheus)
        self.influxdb = InfluxDB(self.endpoints.influxdb) if self.endpoints.influxdb else None
        self.sinks = self._sinks()
        self.view: TargetView | None = None
        self.capacity: Capacity | None = None

    def go(self) -> RunRecord:
        """Runs it and returns its saved record.

        Raises LabError when it could not be run, RunInterruptedError when the user stopped it;
        a record that was begun is closed in both cases.
        """
        if self.own_target:
            cell = self.cell
            self.view = prepare_target(
                self.runtime, cell.settings, cell.build, cell.cores, fresh=cell.fresh
            )
            self.capacity = self.view.capacity()
            self._warn_about_accept_count()
        await_beat(self.prometheus)
        record = self._new_record()
        fill_prediction(record, self.plan, self.capacity)
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
        sinks = self.plan.effective_sinks
        if "influxdb" in sinks and self.influxdb is None:
            warn("InfluxDB is not running: this run keeps no raw samples, so it shows no waves")
            return [sink for sink in sinks if sink != "influxdb"]
        return list(sinks)

    def _warn_about_accept_count(self) -> None:
        if self.capacity and self.capacity.accept_queue_limit < self.capacity.accept_count:
            warn(
                f"accept-count {self.capacity.accept_count} is effectively "
                f"{self.capacity.accept_queue_limit}: net.core.somaxconn limits it"
            )

    def _new_record(self) -> RunRecord:
        own = self.own_target
        made_from = self.runtime.target_build() if own else RunningBuild()
        url = resolved_url(self.plan.target.url, self.endpoints)
        return RunRecord(
            testid=self.testid,
            plan=self.plan.name,
            labels=dict(self.options.labels),
            driver=self.plan.driver,
            started=now(),
            reasons=["still running"],
            experiment=self.cell.experiment,
            values=dict(self.cell.values),
            sinks=self.sinks,
            target=TargetRecord(
                url=_without_credentials(url),
                settings=dict(self.cell.settings),
                effective=self.view.effective_settings() if self.view else {},
                runtime=self.runtime.name if own else None,
                image=made_from.image,
                build=made_from.build,
                compose=list(made_from.compose),
            ),
            connections=Connections(policy=self._policy()),
            host=host_record(self.cell.cores, self.runtime.limits()),
        )

    def _policy(self) -> ConnectionPolicy:
        return "keep-alive" if self.plan.request.keep_alive else "close"

    def _drive(self, record: RunRecord) -> None:
        baseline = Baseline.of(self.view)
        sees = self.runtime.driver_endpoints()
        url = resolved_url(self.plan.target.url, sees)
        # The driver alone reads it: headers may hold a token.
        write_json(record.folder / "plan.json", self._resolved_plan(url, sees), mode=0o600)
        job = Job(self.plan, self.testid, url, sees, self.sinks, self.options.live)
        command = self.driver.command(self.runtime, job)
        if self.cell.cores:
            command = self.runtime.driver_on(command, self.cell.cores)
        version = self.driver.version(self.runtime, self.testid)
        if self.options.live:
            say(f"k6's own dashboard: {DASHBOARD_URL}")
        log = record.folder / f"{self.driver.name}.log"
        components = self._watch_components()
        record.started = now()
        process = DriverProcess(command, log)
        try:
            code = self._watch(process, record.host.driver_cpus)
        except BaseException:
            with _uninterrupted():
                process.stop()
            raise
        finally:
            record.ended = now()
            for usage in components.values():
                usage.stop()
            self._measure_generator(record, process.usage, version)
            self.driver.remove_secrets(record.folder)
        failed = self.driver.why_failed(code, log)
        if failed:
            raise LabError(failed)
        happened = self.driver.read_summary(record.folder, self.plan)
        variant, repeat = self.cell.variant_name, self.cell.repeat
        figures = RunFigures(record, self.plan, variant, repeat, self.prometheus, self.influxdb)
        figures.fill_steps(happened, process.usage, components)
        figures.fill_target(self.view, self.capacity, baseline)
        figures.note_gaps()
        self.gone = self.stores.missing()
        gone = [f"{name} went away during the run" for name in self.gone]
        self._close(record, [*figures.reasons, *gone])

    def _resolved_plan(self, url: str, sees: Endpoints) -> dict[str, object]:
        """The hand-over to a driver's script (LAB_PLAN); see docs/plans.md."""
        resolved = self.plan.model_dump(mode="json", include={"driver", "request", "phases", "slo"})
        for phase in resolved["phases"]:
            phase["url"] = phase["url"] and resolved_url(phase["url"], sees)
        return {
            "schema": 1,
            "testid": self.testid,
            "plan": self.plan.name,
            "target": {"url": url},
            **resolved,
            "summary": self.runtime.driver_path(self.driver.summary_file, self.testid),
            "events": {"url": sees.influxdb, "database": DATABASE} if self.influxdb else None,
        }

    def _watch_components(self) -> dict[str, Usage]:
        if not self.own_target:
            return {}
        return {
            name: Usage(partial(psutil.Process, pid), waits=False)
            for name, pid in self.runtime.process_ids().items()
        }

    def _watch(self, process: DriverProcess, cpus: int) -> int:
        sockets = f"{self.endpoints.sockets}/metrics" if self.view else None
        plan = self.plan
        live = LiveRun(plan, self.testid, self.prometheus, self.influxdb, cpus)
        with RunProgress(self.testid, plan, self.prometheus, sockets) as bar:

            def tick() -> None:
                # A store that does not answer in between is no reason to stop.
                with suppress(LabError):
                    live.tick(process.usage)
                    bar.tick(live.phase_now())

            return process.wait(tick)

    def _measure_generator(self, record: RunRecord, usage: Usage, version: str) -> None:
        use = usage.overall()
        record.generator = Generator(
            cpu=round(use.cores, 3) if use else None,
            memory_bytes=usage.memory_bytes or None,
            limited=generator_limited(use, record.host.driver_cpus, self.plan.driver),
            versions={self.driver.name: version},
        )

    def _abort(self, record: RunRecord, reason: str) -> None:
        self._close(record, [reason])
        assert record.ended is not None
        if self.influxdb:
            mark_aborted(self.influxdb, record, record.ended)

    def _close(self, record: RunRecord, reasons: Sequence[str]) -> None:
        record.ended = record.ended or now()
        record.reasons = list(reasons)
        record.valid = not reasons
        record.verdict = judge_run(record.valid, record.steps)
        record.save()
        # The record is closed: a Ctrl-C from here on must not make an aborted run of it.
        with _uninterrupted():
            drawn = keep_series(record, self.prometheus)
            if self.influxdb:
                write_history(record, self.influxdb, drawn)


def resolved_url(url: str | None, seen: Endpoints) -> str:
    """A plan's url as an address; without one, the lab's own target."""
    if url is None:
        return seen.target
    if not url.startswith(PROXY_PREFIX):
        return url
    if seen.proxy is None:
        raise LabError("the proxy is not running: ./lab up --with proxy")
    return seen.proxy[url.removeprefix(PROXY_PREFIX)]


def identity(plan: str) -> str:
    """`<utc>-<plan>-<4 hex>`: sorts by time."""
    return f"{now():%Y%m%dT%H%M%SZ}-{plan}-{secrets.token_hex(2)}"


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """While the lab tidies up, a second Ctrl-C waits; what it does here is bounded."""
    previous = {number: signal.signal(number, signal.SIG_IGN) for number in END_SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
