"""One run from its plan to its record: prepare, drive, measure, judge, save."""

# - Cells: the runs that an experiment is made of.
# - What is checked before any load: the stack, the target's address, this machine's limits.
import ipaddress
import secrets
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit

import psutil

from spikelab import paths
from spikelab.console import say, warn
from spikelab.drivers.base import Job
from spikelab.drivers.choice import driver_of
from spikelab.drivers.k6 import DASHBOARD_URL
from spikelab.drivers.process import DriverProcess, Usage
from spikelab.errors import END_SIGNALS, LabError, RunInterruptedError, UsageError
from spikelab.history import mark_aborted, write_history
from spikelab.judge import generator_limited, judge_run
from spikelab.live import LiveRun, RunProgress
from spikelab.machine import Cores, host_record, most_users
from spikelab.measure import RunFigures, TargetBefore
from spikelab.plans.model import Plan, Variant
from spikelab.plans.parameters import PROXY_PREFIX
from spikelab.prediction.check import fill_prediction
from spikelab.results.run import (
    ConnectionPolicy,
    Connections,
    Generator,
    RunRecord,
    Scalar,
    TargetRecord,
    now,
    write_json,
)
from spikelab.series import keep_series
from spikelab.settings import (
    DATABASE,
    Endpoints,
    SettingValue,
    load_stack_settings,
    load_target_declaration,
    target_settings_of,
)
from spikelab.stack.base import RunningBuild, Runtime, TargetBuild
from spikelab.stores import InfluxDB, Prometheus, Stores, await_beat
from spikelab.target import ConnectionCapacity, TargetView, prepare_target


@dataclass(frozen=True)
class RunOptions:
    """What the command line adds to a plan."""

    labels: Mapping[str, str] = field(default_factory=dict)
    target_settings: Mapping[str, str] = field(default_factory=dict)
    live: bool = False
    own_target_elsewhere: bool = False


@dataclass(frozen=True)
class Cell:
    """One run: the values of the plan's parameters that it changes, its variant, all settings of
    the lab's own target, its repeat (from 1), and the experiment it belongs to; the target's build
    (None: the lab's own), and the CPUs of driver and target (None: they share all). `fresh`: it
    begins with a restart of the target, whatever runs."""

    variant: Variant | None
    settings: Mapping[str, SettingValue]
    repeat: int
    experiment: str | None
    values: Mapping[str, Scalar]
    build: TargetBuild | None = None
    cores: Cores | None = None
    fresh: bool = False

    @property
    def variant_name(self) -> str | None:
        return self.variant.name if self.variant else None


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
        self.capacity: ConnectionCapacity | None = None

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
        baseline = TargetBefore.of(self.view)
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
        happened = self.driver.read_summary(record.folder, self.plan.phases)
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


def cell_name(values: Mapping[str, Scalar], variant: str | None, repeat: int) -> str:
    """What a user calls it.

    >>> cell_name({"rate": 600}, "on", 2)
    'rate=600 on #2'
    """
    parts = [f"{name}={value}" for name, value in values.items()]
    return " ".join([*parts, *([variant] if variant else []), f"#{repeat}"])


_CONNECT_SECONDS = 5


def require_stack(runtime: Runtime, plan: Plan) -> None:
    """The components that the plan needs are running. Raises LabError naming those that are not."""
    needed = {"prometheus", *plan.components}
    if not plan.foreign_urls:
        needed |= {"target", "sockets"}
    states = {each.name: each.state for each in runtime.status()}
    # One that was left out is stopped. One that has died would leave holes in the run's history.
    if states.get("influxdb", "stopped") != "stopped":
        needed.add("influxdb")
    # One that was started a moment ago has answered its health check, whatever its state is called.
    up = {name for name, state in states.items() if state in ("running", "starting")}
    missing = sorted(needed - up)
    if missing:
        optional = ",".join(sorted(set(missing) & set(plan.components)))
        start = "./lab up" + (f" --with {optional}" if optional else "")
        raise LabError(f"not running: {', '.join(missing)}: start it with {start}")


def require_users(users: int) -> None:
    """This machine can carry so many users. Raises UsageError naming the limit."""
    most, reason = most_users()[0]
    if users > most:
        raise UsageError(
            f"{users:,} users are more than this machine carries: about {most:,} ({reason}); "
            "ask for fewer, or raise the limit (./lab doctor)"
        )


def require_target(url: str, owned: bool) -> None:
    """The target is reachable, and this machine's or the user's own. Raises UsageError."""
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    try:
        host = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)[0][4][0]
    except OSError as error:
        raise UsageError(f"target.url: '{parts.hostname}' is unknown: {error.strerror}") from error
    if not owned and not _of_this_machine(str(host)):
        raise UsageError(
            f"target.url: {parts.hostname} is not this machine: put load only on what is yours, "
            "and say so with --i-own-this-target"
        )
    try:
        socket.create_connection((str(host), port), _CONNECT_SECONDS).close()
    except OSError as error:
        raise UsageError(
            f"target.url: {url} is unreachable ({error.strerror or error}): is it running?"
        ) from error


def _of_this_machine(address: str) -> bool:
    parsed = ipaddress.ip_address(address)
    if parsed.is_loopback or parsed.is_unspecified:
        return True
    own = {each.address for addresses in psutil.net_if_addrs().values() for each in addresses}
    return address in own


def target_settings(
    plan: Plan, variant: Variant | None, given: Mapping[str, str]
) -> dict[str, SettingValue]:
    """Every setting of the lab's own target in this variant's run; none for another target.

    Raises UsageError for a setting that is unknown, out of range or not the lab's to change.
    """
    own = variant.settings if variant else {}
    if plan.foreign_urls:
        # A variant with a url of its own stands beside others on the lab's target.
        others = variant is not None and variant.url is not None
        if own or (not others and (given or plan.target.settings)):
            raise UsageError(
                "target settings apply to the lab's own target, and this plan's is "
                + ", ".join(sorted(plan.foreign_urls))
            )
        return {}
    declaration = load_target_declaration()
    defaults = target_settings_of(load_stack_settings().values, declaration.settings)
    return declaration.resolve(defaults, plan.target.settings, own, given)
