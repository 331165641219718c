"""An experiment: the runs that answer one question about a plan, and its state on disk.

It is checked before anything starts, begun anew or resumed, and runs in a session, which has the
lab to itself. The state is saved after every run: the same command goes on where it stopped.
"""

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from spikelab import paths
from spikelab.console import say, warn
from spikelab.drivers.base import Run
from spikelab.errors import LabError, RunInterruptedError, UsageError
from spikelab.history import write_history, write_owed
from spikelab.machine import chosen_cores
from spikelab.measure import died
from spikelab.plans.estimate import run_estimate
from spikelab.plans.load import plan_of
from spikelab.plans.model import Plan
from spikelab.plans.studies import Variant
from spikelab.results.experiment import (
    CellState,
    ExperimentKind,
    ExperimentProgress,
    ExperimentState,
)
from spikelab.results.run import RunRecord, now
from spikelab.run import (
    RunOptions,
    checked_hosts,
    execute,
    identity,
    require_stack,
    require_users,
    target_settings,
)
from spikelab.settings import load_stack_settings
from spikelab.stack import environment
from spikelab.stack.base import Runtime
from spikelab.stack.builds import TargetBuild, build_of
from spikelab.stack.locks import only_run
from spikelab.stores import InfluxDB, Stores
from spikelab.units import parse_duration

# A run that turned out to be no measurement is repeated at once: so often at most.
TRIES = 3


class Experiment:
    """A plan, what the command line adds to it, and the state of its runs.

    `fresh`: the target is restarted before every run.
    """

    def __init__(
        self, plan: Plan, options: RunOptions, state: ExperimentState, fresh: bool | None = None
    ) -> None:
        self.plan = plan
        self.options = options
        self.state = state
        self.fresh = restarts(plan) if fresh is None else fresh

    @classmethod
    def new(
        cls,
        kind: ExperimentKind,
        plan: Plan,
        options: RunOptions,
        cells: Sequence[CellState] = (),
        *,
        seed: int | None = None,
        order: str = "as-written",
        fresh: bool | None = None,
        asked: str = "",
    ) -> Self:
        """Of these cells, in the order of their runs; nothing is written yet.

        `seed`: the one in use, also where it was drawn. `fresh`: whether the target is restarted
        before every run, where the plan's own variants do not say it. `asked`: what the command
        line asks of the runs, where that is not the plan's own question.
        """
        variants: Sequence[Variant | None] = plan.variants or [None]
        state = ExperimentState(
            experiment=identity(plan.name),
            kind=kind,
            plan=plan.name,
            about=plan.about,
            digest=digest(kind, plan, options, asked),
            arms={each.name if each else "": arm_digest(plan, options, each) for each in variants},
            labels=dict(options.labels),
            seed=seed,
            order=order,
            slo=list(plan.slo),
            started=now(),
            cells=list(cells),
        )
        return cls(plan, options, state, fresh)

    def resumed(self) -> Self | None:
        """The newest experiment of the same command, where that is not finished.

        Its cells are as their records say: a run that ended just before the lab was killed counts,
        and one whose record is gone does not.
        """
        own = self.state
        for state in ExperimentState.read_all():
            if state.kind == own.kind and state.digest == own.digest:
                if state.state == "finished":
                    return None
                for cell in state.cells:
                    check_attempts(cell)
                return type(self)(self.plan, self.options, state, self.fresh)
        return None

    def check(self, cells: Sequence[CellState] | None = None) -> None:
        """Everything that can be wrong with these runs, or its own, on this machine.

        Raises UsageError.
        """
        urls: set[str] = set()
        builds_of(self.plan)
        for cell in _one_of_each(self.state.cells if cells is None else cells):
            plan = self.plan_of(cell)
            variant = self.plan.variant(cell.variant)
            target_settings(plan, variant, self.options.target_settings)
            if self.options.live and plan.driver != "k6":
                raise UsageError("--live: only k6 has a dashboard of its own for a run")
            require_users(plan.users)
            urls |= plan.foreign_urls
        checked_hosts(urls, self.options.own_target_elsewhere)

    def plan_of(self, cell: CellState) -> Plan:
        """What a cell runs. Raises UsageError naming file, line, key and cure."""
        return plan_of(self.plan, cell.values, self.plan.variant(cell.variant))

    def planned_seconds(self) -> list[float]:
        """How long each cell's run is planned."""
        known = {
            cell.arm: run_estimate(self.plan_of(cell), self.plan.variant(cell.variant)).seconds
            for cell in _one_of_each(self.state.cells)
        }
        return [known[cell.arm] for cell in self.state.cells]

    def replaced_targets(self) -> list[str]:
        """A line for each variant of its runs that starts another target than the lab's own."""
        used = {cell.variant for cell in self.state.cells}
        return [
            f"variant {name} replaces the lab's own target: {_shown(build)}"
            for name, build in builds_of(self.plan).items()
            if name in used
        ]

    @contextmanager
    def session(self, runtime: Runtime) -> Iterator["ExperimentSession"]:
        """The lab to itself, checked and ready to run its cells.

        An error in the block is kept in the state as the reason why it stopped, and says with
        which run the same command goes on.
        """
        with only_run() as announce:
            self._prepare(runtime)
            self.state.state, self.state.reason, self.state.ended = "going", None, None
            session = ExperimentSession(self, runtime, announce)
            try:
                session.require_stores()
                session.save()
                yield session
            except (Exception, KeyboardInterrupt) as error:
                for cell in self.state.cells:
                    check_attempts(cell)
                with suppress(OSError):
                    session.stop(reason_of(error))
                stopped = with_next_step(self.state, error)
                if stopped is error:
                    raise
                raise stopped from error

    def _prepare(self, runtime: Runtime) -> None:
        """The stack is there for all of its runs, and nothing of earlier ones is left open."""
        for build in builds_of(self.plan).values():
            runtime.require_build(build)
        for line in self.replaced_targets():
            say(line)
        if ignored := environment.ignored(load_stack_settings().defaults):
            warn(f"{', '.join(ignored)}: ignored, as drivers do not get them (docs/drivers.md)")
        # A search adds its cells as it goes.
        plans = [self.plan_of(cell) for cell in _one_of_each(self.state.cells)] or [self.plan]
        components = list(dict.fromkeys(name for plan in plans for name in plan.components))
        if components:
            runtime.require(components)
        # Plans differ in little: asking the runtime takes a moment.
        for plan in {(*plan.components, bool(plan.foreign_urls)): plan for plan in plans}.values():
            require_stack(runtime, plan)
        close_abandoned(runtime.endpoints().influxdb)


def digest(kind: ExperimentKind, plan: Plan, options: RunOptions, asked: str = "") -> str:
    """Of all that makes two commands the same experiment. A hash: headers may hold a token."""
    given: dict[str, Any] = {
        "kind": kind,
        "plan": plan.source.data,
        "values": plan.source.values,
        "sinks": list(plan.source.sinks),
        "target settings": options.target_settings,
        "labels": options.labels,
        "builds": [build.fingerprint() for build in builds_of(plan).values()],
    }
    if asked:
        given["asked"] = asked
    text = json.dumps(given, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def arm_digest(plan: Plan, options: RunOptions, variant: Variant | None) -> str:
    """Of what the runs of a variant measure: two of one digest differ at most in their number,
    length, order and in how they are judged. A hash: headers may hold a token."""
    own = plan_of(plan, {}, variant)
    given = own.model_dump(
        mode="json", include={"name", "driver", "script", "target", "request", "needs"}
    )
    given["phases"] = [
        each.model_dump(mode="json", exclude={"duration", "start"}) for each in own.phases
    ]
    given["settings"] = target_settings(own, variant, options.target_settings)
    given["labels"] = options.labels
    build = build_of(variant, plan.path) if variant else None
    given["build"] = build.fingerprint() if build else None
    return hashlib.sha256(json.dumps(given, sort_keys=True, default=str).encode()).hexdigest()


def restarts(plan: Plan) -> bool:
    """Whether the target is restarted before every run: where some runs need it, as their settings
    or build differ, all have it, for a warm one would be ahead of a cold one."""
    builds = builds_of(plan)
    starts = [(v.settings, builds.get(v.name)) for v in plan.variants if not v.url]
    return any(start != starts[0] for start in starts)


def builds_of(plan: Plan) -> dict[str, TargetBuild]:
    """The other builds of the target that the plan's variants name. Raises UsageError."""
    builds = {variant.name: build_of(variant, plan.path) for variant in plan.variants}
    return {name: build for name, build in builds.items() if build}


def _shown(build: TargetBuild) -> str:
    parts = [f"image {build.image}"] if build.image else []
    parts += [f"jar {paths.shown(build.jar)}"] if build.jar else []
    return ", ".join([*parts, *(f"compose {paths.shown(path)}" for path in build.compose)])


def _one_of_each(cells: Iterable[CellState]) -> list[CellState]:
    """Repeats of a cell once."""
    return list({cell.arm: cell for cell in cells}.values())


class ExperimentSession:
    """Runs the cells of an experiment. `state` is saved after each; a cell's earlier attempts stay
    in it."""

    def __init__(
        self, experiment: Experiment, runtime: Runtime, announce: Callable[[str], None]
    ) -> None:
        self.experiment = experiment
        self.state = experiment.state
        self._runtime = runtime
        self._announce = announce
        plan, kind = experiment.plan, self.state.kind
        self._builds = builds_of(plan)
        self._hosts: dict[str, dict[str, str]] = {}
        # As compose/.env says, else separate ones to compare the lab's own target with itself.
        self._cores = chosen_cores(
            load_stack_settings().values,
            runtime.cpus(),
            separate=kind == "comparison" and not plan.foreign_urls,
        )
        # `./lab run` measures without a store as well as it can; the others need each run whole.
        self._stores = Stores.of(runtime.endpoints()) if kind != "run" else Stores()
        self._resting_until = rested_at(self.state, plan) or now()

    def run(self, cell: CellState) -> RunRecord:
        """Runs a cell, of the state or new to it, and returns its record: when that is valid, the
        cell is done.

        Raises LabError when it cannot be run, RunInterruptedError when the user stopped it.
        """
        if not any(cell is known for known in self.state.cells):
            self.state.cells.append(cell)
        self._stores.require()
        self._rest()
        run = self._run_of(cell)
        self._announce(run.testid)
        # Before it starts: a lab that is killed in it leaves the attempt behind.
        cell.attempts.append(run.testid)
        self.save()
        try:
            record = execute(run)
        finally:
            self._resting_until = now() + timedelta(seconds=parse_duration(run.plan.cool_down))
        take(cell, record)
        self.save()
        if run.gone:
            raise LabError(f"{self._stores.named(run.gone)} went away: ./lab up starts it again")
        return record

    def run_until_valid(self, cell: CellState) -> Iterator[RunRecord]:
        """Each run of a cell until one is valid, or there were too many that were not."""
        for _ in range(TRIES):
            record = self.run(cell)
            yield record
            if record.valid:
                return

    def run_step(self, cell: CellState) -> RunRecord:
        """A run that decides a step of a search: a valid one, or one in which the target died.

        Raises LabError after too many that are neither.
        """
        for record in self.run_until_valid(cell):
            if record.valid or died(record):
                return record
            warn(f"no valid run: {'; '.join(record.reasons)}")
        raise LabError(f"no valid run in {TRIES}: {'; '.join(record.reasons)}")

    def finish(self, answer: dict[str, Any] | None = None) -> None:
        """All runs are done: `answer` is what they say."""
        self.state.answer = answer
        self._end("finished", None)

    def stop(self, reason: str) -> None:
        """It ends before all runs are done; the same command goes on from here."""
        self._end("stopped", reason)

    def _end(self, progress: ExperimentProgress, reason: str | None) -> None:
        self.state.state, self.state.reason, self.state.ended = progress, reason, now()
        self.save()

    def save(self) -> None:
        if self._has_state_file:
            self.state.save()

    @property
    def _has_state_file(self) -> bool:
        """A single run needs no state: its record says all."""
        return self.state.kind != "run" or len(self.state.cells) > 1

    def require_stores(self) -> None:
        """The stores are there that earlier runs had. Raises LabError."""
        if not self._stores.health:
            return
        missing = [name for name in self.state.stores if name not in self._stores.health]
        if missing:
            raise LabError(
                f"{', '.join(missing)} is not running, as it was before: ./lab up starts it"
            )
        self.state.stores = list(self._stores.health)
        self._stores.require()

    def _run_of(self, cell: CellState) -> Run:
        options, plan = self.experiment.options, self.experiment.plan_of(cell)
        variant = self.experiment.plan.variant(cell.variant)
        return Run(
            testid=identity(plan.name),
            plan=plan.model_copy(update={"phases": plan.phases_of(cell.repeat)}),
            cell=cell,
            runtime=self._runtime,
            settings=target_settings(plan, variant, options.target_settings),
            labels=options.labels,
            stores=self._stores,
            experiment=self.state.experiment if self._has_state_file else None,
            build=self._builds.get(cell.variant or ""),
            cores=self._cores,
            fresh=self.experiment.fresh,
            live=options.live,
            hosts=self._hosts_of(plan),
        )

    def _hosts_of(self, plan: Plan) -> dict[str, str]:
        """Where its targets are: looked up once, so that no run is of another server."""
        owned = self.experiment.options.own_target_elsewhere
        for url in plan.foreign_urls - self._hosts.keys():
            self._hosts[url] = checked_hosts([url], owned)
        return {k: v for url in plan.foreign_urls for k, v in self._hosts[url].items()}

    def _rest(self) -> None:
        seconds = (self._resting_until - now()).total_seconds()
        if seconds > 0:
            say(f"cooling down for {seconds:.0f} s")
            time.sleep(seconds)


def rested_at(state: ExperimentState, plan: Plan) -> datetime | None:
    """When the last run's cool-down ends, also one of an earlier session; None before the first."""
    valid = [cell.testid for cell in state.cells if cell.testid]
    testids = [*valid, *(testid for cell in state.cells for testid in cell.attempts)]
    # A testid begins with the time.
    last = RunRecord.read(max(testids)) if testids else None
    if last is None or last.ended is None:
        return None
    return last.ended + timedelta(seconds=parse_duration(plan.cool_down))


def check_attempts(cell: CellState) -> None:
    """Brings a cell to what the records of its runs say."""
    tried = [*cell.attempts, *([cell.testid] if cell.testid else [])]
    records = [record for testid in tried if (record := RunRecord.read(testid)) is not None]
    cell.testid = None
    # One without a record was never begun.
    cell.attempts = [record.testid for record in records]
    for record in records:
        take(cell, record)


def take(cell: CellState, record: RunRecord) -> None:
    """A valid run is the cell's result."""
    if record.valid:
        cell.testid = record.testid
        cell.attempts = [testid for testid in cell.attempts if testid != record.testid]


class TimeLeft:
    """Learns from each run how much longer than planned runs take here."""

    def __init__(self) -> None:
        self._extra_seconds: list[float] = []

    def took(self, planned: float, seconds: float) -> None:
        """A run that was planned so long took so long, all in all."""
        self._extra_seconds.append(seconds - planned)

    def seconds(self, planned: Iterable[float]) -> float:
        """How long runs take that are planned so long; as planned, before the first."""
        runs = list(planned)
        known = self._extra_seconds or [0.0]
        return max(0.0, sum(runs) + len(runs) * sum(known) / len(known))


# With less the disk counts as full: it is, for whatever is to be written next.
_LEAST_FREE_BYTES = 1_000_000


def reason_of(error: BaseException) -> str:
    """What stopped it. A full disk shows in many ways, and is named for what it is."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, RunInterruptedError):
        return str(error)
    if shutil.disk_usage(paths.RESULTS).free < _LEAST_FREE_BYTES:
        return f"the disk of {paths.shown(paths.RESULTS)} is full: make room"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or paths.shown(paths.RESULTS)}: {error.strerror}"
    return str(error) or type(error).__name__


def with_next_step(state: ExperimentState, error: BaseException) -> BaseException:
    """The error as the user gets it: of what another start goes on with, also with which run.

    A search alone knows its next step, and a step in which the target died is no valid run.
    """
    if state.kind == "run" or not isinstance(error, LabError | OSError | KeyboardInterrupt):
        return error
    kind = RunInterruptedError if isinstance(error, KeyboardInterrupt) else LabError
    if isinstance(error, LabError):
        kind = type(error)
    return kind(f"{reason_of(error)}; {_next_step(state)}")


def _next_step(state: ExperimentState) -> str:
    if state.kind == "capacity":
        return "its steps are kept: the same command goes on"
    runs, done = len(state.cells), sum(cell.done for cell in state.cells)
    following = next((n for n, cell in enumerate(state.cells, 1) if not cell.done), None)
    if following is None:
        return f"all {runs} runs are done: the same command gives the answer"
    return (
        f"{done} of {runs} runs are done: the same command goes on with run {following} of {runs}"
    )


def close_abandoned(influxdb_url: str | None) -> None:
    """Closes every open record and its phases, writes the history that is owed, and stops
    experiments that count as going. Without InfluxDB, what belongs there stays owed.

    To be called only while no run is going.
    """
    influxdb = InfluxDB(influxdb_url) if influxdb_url else None
    if influxdb:
        write_owed(influxdb)
    for record in RunRecord.read_all():
        if record.ended is None:
            record.ended = _last_written(record.folder)
            record.reasons = ["the lab was killed during the run"]
            record.save()
            write_history(record, influxdb)
    for state in ExperimentState.read_all():
        if state.state == "going":
            state.state, state.reason = "stopped", "the lab was killed"
            state.ended = _last_written(state.folder)
            state.save()


def _last_written(folder: Path) -> datetime:
    """When the run, or the experiment, last wrote a file."""
    written = max(path.stat().st_mtime for path in folder.iterdir())
    return datetime.fromtimestamp(written, UTC)
