"""One run: its record is opened, the load driven, its figures taken, the record closed.

Before any load: the stack is there, the target's address is allowed, this machine carries it.
"""

import ipaddress
import re
import secrets
import signal
import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit

import psutil

from spikelab import paths
from spikelab.console import say, warn
from spikelab.drivers import driver_of
from spikelab.drivers.base import PhaseSummary, Run, resolved_url
from spikelab.drivers.k6 import DASHBOARD_URL
from spikelab.drivers.process import DriverProcess, Usage
from spikelab.errors import END_SIGNALS, LabError, RunInterruptedError, UsageError
from spikelab.history import write_history
from spikelab.judge import generator_limited, judge_run
from spikelab.live import LiveRun, RunProgress
from spikelab.machine import host_record, most_users
from spikelab.measure import RunFigures, TargetBefore
from spikelab.plans.model import Plan
from spikelab.plans.studies import Variant
from spikelab.prediction.check import fill_prediction
from spikelab.results.files import write_json
from spikelab.results.run import Connections, Generator, RunRecord, TargetRecord, now
from spikelab.series import keep_series
from spikelab.settings import (
    DATABASE,
    SettingValue,
    load_stack_settings,
    load_target_declaration,
)
from spikelab.stack.base import Runtime
from spikelab.stack.builds import RunningBuild
from spikelab.stores import InfluxDB, Prometheus, await_beat
from spikelab.target import ConnectionCapacity, TargetView, prepare_target


@dataclass(frozen=True)
class RunOptions:
    """What the command line adds to a plan."""

    labels: Mapping[str, str] = field(default_factory=dict)
    target_settings: Mapping[str, str] = field(default_factory=dict)
    live: bool = False
    own_target_elsewhere: bool = False


def execute(run: Run) -> RunRecord:
    """Runs it once and returns its saved record.

    Raises LabError when it could not be run, RunInterruptedError when the user stopped it;
    a record that was begun is closed in both cases.
    """
    view, capacity = _prepare(run)
    record = open_record(run, view)
    fill_prediction(record, run.plan, capacity)
    before = TargetBefore()
    try:
        record.save()
        say(f"run {run.testid}")
        before = TargetBefore.of(view, run.plan)
        happened, driver, components = _drive(run, record)
        served = before.served_since(view)
        figures = RunFigures(record, run)
        figures.fill_steps(happened, driver, components)
        figures.fill_target(view, capacity, before)
        figures.find_interference(happened, served)
        figures.note_gaps()
        run.gone = run.stores.missing()
        gone = [f"{name} went away during the run" for name in run.gone]
        close_record(record, [*figures.reasons, *gone], run.prometheus, run.influxdb)
    except KeyboardInterrupt as error:
        with _uninterrupted():
            close_record(record, ["interrupted by the user"], run.prometheus, run.influxdb)
        raise RunInterruptedError(
            f"interrupted: {paths.shown(record.folder / 'run.json')} is closed as incomplete"
        ) from error
    except Exception as error:
        close_record(record, [str(error)], run.prometheus, run.influxdb)
        raise
    finally:
        before.stop()
    return record


def _prepare(run: Run) -> tuple[TargetView | None, ConnectionCapacity | None]:
    """Brings the lab's own target to the run's settings, and waits for Prometheus."""
    if "influxdb" in run.plan.effective_sinks and run.influxdb is None:
        warn("InfluxDB is not running: this run keeps no raw samples, so it shows no waves")
    view = capacity = None
    if run.own_target:
        view = prepare_target(run.runtime, run.settings, run.build, run.cores, fresh=run.fresh)
        capacity = view.capacity()
        if capacity and capacity.accept_queue_limit < capacity.accept_count:
            warn(
                f"accept-count {capacity.accept_count} is effectively "
                f"{capacity.accept_queue_limit}: net.core.somaxconn limits it"
            )
    await_beat(run.prometheus)
    return view, capacity


def open_record(run: Run, view: TargetView | None) -> RunRecord:
    """The record of a run that begins now, not saved yet. `view`: of the lab's own target."""
    own = run.own_target
    made_from = run.runtime.target_build() if own else RunningBuild()
    return RunRecord(
        testid=run.testid,
        plan=run.plan.name,
        labels=dict(run.labels),
        driver=run.plan.driver,
        started=now(),
        reasons=["still running"],
        experiment=run.experiment,
        values=dict(run.cell.values),
        sinks=run.sinks,
        target=TargetRecord(
            url=_without_credentials(resolved_url(run.plan.target.url, run.endpoints)),
            addresses=dict(run.hosts),
            settings=dict(run.settings),
            effective=view.effective_settings() if view else {},
            runtime=run.runtime.name if own else None,
            image=made_from.image,
            build=made_from.build,
            compose=list(made_from.compose),
        ),
        connections=Connections(policy="keep-alive" if run.plan.request.keep_alive else "close"),
        host=host_record(run.cores, run.runtime.limits()),
    )


def close_record(
    record: RunRecord, reasons: Sequence[str], prometheus: Prometheus, influxdb: InfluxDB | None
) -> None:
    """Judges and saves a record whose run is over, and writes its series and its history.

    `reasons`: why it is no valid measurement; none: it is one.
    """
    record.ended = record.ended or now()
    record.reasons = list(reasons)
    record.valid = not reasons
    record.verdict = judge_run(record.valid, record.steps)
    record.save()
    # The record is closed: a Ctrl-C from here on must not make an aborted run of it.
    with _uninterrupted():
        keep_series(record, prometheus)
        if influxdb:
            write_history(record, influxdb)


def _drive(run: Run, record: RunRecord) -> tuple[list[PhaseSummary], Usage, dict[str, Usage]]:
    """The driver's figures of the phases, and what it and the stack's components used.

    Raises LabError where the driver did not finish.
    """
    driver = driver_of(run.plan.driver)
    # The driver alone reads it: headers may hold a token.
    write_json(record.folder / "plan.json", _handed_over(run, driver.summary_file), mode=0o600)
    command = driver.command(run)
    version = driver.version(run)
    if run.live:
        say(f"k6's own dashboard: {DASHBOARD_URL}")
    log = record.folder / f"{driver.name}.log"
    components = _watch_components(run)
    record.started = now()
    process = DriverProcess(command, log)
    try:
        code = _watch(run, process, record.host.driver_cpus)
    except BaseException:
        with _uninterrupted():
            process.stop()
        raise
    finally:
        record.ended = now()
        for usage in components.values():
            usage.stop()
        use = process.usage.overall()
        record.generator = Generator(
            cpu=round(use.cores, 3) if use else None,
            memory_bytes=process.usage.memory_bytes or None,
            limited=generator_limited(use, record.host.driver_cpus, run.plan.driver),
            versions={driver.name: version},
        )
    if failed := driver.why_failed(code, log):
        raise LabError(failed)
    return driver.read_summary(record.folder, run.plan.phases), process.usage, components


def _handed_over(run: Run, summary_file: str) -> dict[str, object]:
    """What a driver's script gets (LAB_PLAN); see docs/plans.md."""
    seen = run.driver_endpoints
    resolved = run.plan.model_dump(mode="json", include={"driver", "request", "phases", "slo"})
    for phase in resolved["phases"]:
        phase["url"] = phase["url"] and resolved_url(phase["url"], seen)
    return {
        "schema": 1,
        "testid": run.testid,
        "plan": run.plan.name,
        "target": {"url": run.url},
        "hosts": dict(run.hosts),
        **resolved,
        "summary": run.runtime.driver_path(summary_file, run.testid),
        "events": {"url": seen.influxdb, "database": DATABASE} if run.influxdb else None,
    }


def _watch_components(run: Run) -> dict[str, Usage]:
    if not run.own_target:
        return {}
    return {
        name: Usage(partial(psutil.Process, pid), waits=False)
        for name, pid in run.runtime.process_ids().items()
    }


def _watch(run: Run, process: DriverProcess, cpus: int) -> int:
    """Shows and pushes what is seen of the run until the driver ends; its exit code."""
    live = LiveRun(run, cpus)
    with RunProgress(run) as bar:

        def tick() -> None:
            # A store that does not answer in between is no reason to stop.
            with suppress(LabError):
                live.tick(process.usage)
                bar.tick(live.phase_now())

        return process.wait(tick)


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


# What k6 can give an address of our choice: names of this form.
_LABEL = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_HOST_NAME = re.compile(rf"({_LABEL}\.)*{_LABEL}")


def checked_hosts(urls: Collection[str], owned: bool) -> dict[str, str]:
    """`name:port` of each target that has a name → the address that drivers are to use for it.

    All addresses of a name are this machine's, or the user's own (`owned`); the first that takes a
    connection is the one. Looked up once: a driver that did it again could be told another.
    Raises UsageError.
    """
    found = {}
    for url in sorted(urls):
        parts = urlsplit(url)
        name, port = parts.hostname or "", parts.port or {"http": 80, "https": 443}[parts.scheme]
        addresses = _addresses(name, port)
        strange = [each for each in addresses if not _of_this_machine(each)]
        if strange and not owned:
            one_of = f"{name} is {strange[0]}, which" if name != strange[0] else name
            raise UsageError(
                f"target.url: {one_of} is not this machine: put load only on what is yours, "
                "and say so with --i-own-this-target"
            )
        address = _reachable(url, addresses, port)
        if name in addresses:
            continue
        if not _HOST_NAME.fullmatch(name):
            raise UsageError(
                f"target.url: '{name}' is no host name that drivers can be given the address of "
                f"(letters, digits, hyphens and dots): give {address} instead"
            )
        found[f"{name}:{port}"] = address
    return found


def _addresses(name: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise UsageError(f"target.url: '{name}' is unknown: {error.strerror}") from error
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _reachable(url: str, addresses: Sequence[str], port: int) -> str:
    """The first of them that takes a connection. Raises UsageError with the first's reason."""
    reasons = []
    for address in addresses:
        try:
            socket.create_connection((address, port), _CONNECT_SECONDS).close()
        except OSError as error:
            reasons.append(error.strerror or str(error))
        else:
            return address
    raise UsageError(f"target.url: {url} is unreachable ({reasons[0]}): is it running?")


def _of_this_machine(address: str) -> bool:
    parsed = ipaddress.ip_address(address)
    # ::ffff:192.0.2.7 is 192.0.2.7.
    parsed = getattr(parsed, "ipv4_mapped", None) or parsed
    if parsed.is_loopback or parsed.is_unspecified:
        return True
    own = {each.address for addresses in psutil.net_if_addrs().values() for each in addresses}
    return str(parsed) in own


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
    defaults = declaration.given(load_stack_settings().values)
    return declaration.resolve(defaults, plan.target.settings, own, given)
