"""A session: the lab to itself for the runs of one experiment, and their state kept on disk."""

# - An experiment before its runs: a new one, or one that goes on, and what can be wrong with
#   it.
# - What each cell runs: its plan, the builds of the target, the CPUs.
# - The runs of a plan: its variants and repeats one after another, each with a record of its
#   own.
# - How long the rest of an experiment takes, from what its runs so far took.
# - An experiment that ends before all of its runs are done: why, in one line, and what goes on.
# - What earlier runs left undone because the lab or InfluxDB died: the next command does it.
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from spikelab import paths
from spikelab.console import say
from spikelab.drivers import DRIVERS
from spikelab.drivers.base import Run
from spikelab.errors import LabError, RunInterruptedError, UsageError
from spikelab.history import write_history, write_owed
from spikelab.machine import Cores, chosen_cores
from spikelab.plans.load import plan_of
from spikelab.plans.model import Plan
from spikelab.results.experiment import CellState, ExperimentKind, ExperimentState, all_states
from spikelab.results.run import RunRecord, all_records, now, read_record
from spikelab.run import (
    RunOptions,
    execute,
    identity,
    require_stack,
    require_target,
    require_users,
    target_settings,
)
from spikelab.settings import load_stack_settings
from spikelab.stack.base import Runtime
from spikelab.stack.builds import TargetBuild, build_of
from spikelab.stack.locks import only_run
from spikelab.stores import InfluxDB, Stores
from spikelab.units import parse_duration


class ExperimentSession:
    """Runs cells. `state` is saved after each; a cell's earlier attempts stay in it."""

    def __init__(
        self,
        runtime: Runtime,
        plan: Plan,
        options: RunOptions,
        state: ExperimentState,
        announce: Callable[[str], None],
    ) -> None:
        self.state = state
        self.plan = plan
        self._runtime = runtime
        self._options = options
        self._announce = announce
        self._cores = cores_of(runtime, self.plan, state.kind)
        # Where some runs restart the target, all do: a warm one would be ahead of a cold one.
        self._fresh = start_differently(plan)
        # `./lab run` measures without a store as well as it can; the others need each run whole.
        self._stores = Stores.of(runtime.endpoints()) if state.kind != "run" else Stores()
        self._resting_until = rested_at(state, self.plan) or now()

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

    def finish(self, answer: dict[str, Any] | None = None) -> None:
        """All runs are done: `answer` is what they say."""
        self.state.answer = answer
        self.state.state, self.state.reason = "finished", None
        self.state.ended = now()
        self.save()

    def stop(self, reason: str) -> None:
        """It ends before all runs are done; the same command goes on from here."""
        self.state.state, self.state.reason = "stopped", reason
        self.state.ended = now()
        self.save()

    def save(self) -> None:
        if _kept(self.state):
            self.state.save()

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
        variant = self.plan.variant(cell.variant)
        plan = plan_of(self.plan, cell.values, variant)
        return Run(
            testid=identity(plan.name),
            plan=plan.model_copy(update={"phases": plan.phases_of(cell.repeat)}),
            cell=cell,
            runtime=self._runtime,
            settings=target_settings(plan, variant, self._options.target_settings),
            labels=self._options.labels,
            stores=self._stores,
            experiment=self.state.experiment if _kept(self.state) else None,
            build=build_of(variant, plan.path) if variant else None,
            cores=self._cores,
            fresh=self._fresh,
            live=self._options.live,
        )

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
    last = read_record(max(testids)) if testids else None
    if last is None or last.ended is None:
        return None
    return last.ended + timedelta(seconds=parse_duration(plan.cool_down))


@contextmanager
def open_session(
    runtime: Runtime, plan: Plan, options: RunOptions, state: ExperimentState
) -> Iterator[ExperimentSession]:
    """The lab to itself for this experiment, checked and ready to run its cells.

    An error in the block is kept in the state as the reason why it stopped, and says with which
    run the same command goes on.
    """
    with only_run() as announce:
        _prepare(runtime, plan, state)
        state.state, state.reason, state.ended = "going", None, None
        session = ExperimentSession(runtime, plan, options, state, announce)
        try:
            session.require_stores()
            session.save()
            yield session
        except (Exception, KeyboardInterrupt) as error:
            stopped = _stop(session, error)
            if stopped is error:
                raise
            raise stopped from error


def _prepare(runtime: Runtime, plan: Plan, state: ExperimentState) -> None:
    for build in builds_of(plan):
        runtime.require_build(build)
    # A search adds its cells as it goes.
    plans = [plan_of(plan, cell.values, plan.variant(cell.variant)) for cell in state.cells]
    plans = plans or [plan]
    components = list(dict.fromkeys(name for each in plans for name in each.components))
    if components:
        runtime.require(components)
    # Plans differ in little: asking the runtime takes a moment.
    for each in {(*each.components, bool(each.foreign_urls)): each for each in plans}.values():
        require_stack(runtime, each)
    close_abandoned(runtime.endpoints().influxdb)


def _stop(session: ExperimentSession, error: BaseException) -> BaseException:
    """Keeps in the state why it ends, where that can be written; gives the error to raise."""
    for cell in session.state.cells:
        check_attempts(cell)
    with suppress(OSError):
        session.stop(reason_of(error))
    return told(session.state, error)


def _kept(state: ExperimentState) -> bool:
    """A single run needs no state: its record says all."""
    return state.kind != "run" or len(state.cells) > 1


def begin(
    kind: ExperimentKind,
    plan: Plan,
    options: RunOptions,
    cells: Sequence[CellState] = (),
    *,
    seed: int | None = None,
    order: str = "as-written",
) -> ExperimentState:
    """A new experiment of these cells, in the order of their runs; nothing is written yet.

    `seed`: the one in use, also where it was drawn.
    """
    return ExperimentState(
        experiment=identity(plan.name),
        kind=kind,
        plan=plan.name,
        about=plan.about,
        digest=digest(kind, plan, options),
        labels=dict(options.labels),
        seed=seed,
        order=order,
        slo=list(plan.slo),
        started=now(),
        cells=list(cells),
    )


def resume(kind: ExperimentKind, plan: Plan, options: RunOptions) -> ExperimentState | None:
    """The newest experiment of the same command that is not finished; None without one.

    Its cells are as their records say: a run that ended just before the lab was killed counts,
    and one whose record is gone does not.
    """
    wanted = digest(kind, plan, options)
    for state in all_states():
        if state.kind == kind and state.digest == wanted:
            if state.state == "finished":
                return None
            for cell in state.cells:
                check_attempts(cell)
            return state
    return None


def check_attempts(cell: CellState) -> None:
    """Brings a cell to what the records of its runs say."""
    tried = [*cell.attempts, *([cell.testid] if cell.testid else [])]
    records = [record for testid in tried if (record := read_record(testid)) is not None]
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


def digest(kind: ExperimentKind, plan: Plan, options: RunOptions) -> str:
    """Of all that makes two commands the same experiment. A hash: headers may hold a token."""
    given = {
        "kind": kind,
        "plan": plan.source.data,
        "values": plan.source.values,
        "sinks": list(plan.source.sinks),
        "target settings": options.target_settings,
        "labels": options.labels,
        "builds": [build.fingerprint() for build in builds_of(plan)],
    }
    text = json.dumps(given, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def check_cells(plan: Plan, options: RunOptions, cells: Sequence[CellState]) -> None:
    """Everything that can be wrong with these runs on this machine. Raises UsageError."""
    urls: set[str] = set()
    builds_of(plan)
    for cell in {cell.arm: cell for cell in cells}.values():
        variant = plan.variant(cell.variant)
        own = plan_of(plan, cell.values, variant)
        target_settings(own, variant, options.target_settings)
        if options.live and own.driver != "k6":
            raise UsageError("--live: only k6 has a dashboard of its own for a run")
        require_users(own.users)
        urls |= own.foreign_urls
    for url in sorted(urls):
        require_target(url, options.own_target_elsewhere)


def builds_of(plan: Plan) -> list[TargetBuild]:
    """The builds of the target that the plan's variants name. Raises UsageError."""
    builds = (build_of(variant, plan.path) for variant in plan.variants)
    return [build for build in builds if build]


def start_differently(plan: Plan) -> bool:
    """Whether the plan's variants need different starts of the lab's own target."""
    starts = [(v.settings, build_of(v, plan.path)) for v in plan.variants if not v.url]
    return any(start != starts[0] for start in starts)


def cores_of(runtime: Runtime, plan: Plan, kind: ExperimentKind) -> Cores | None:
    """The CPUs of driver and target: as compose/.env says, else separate ones to compare the lab's
    own target with itself where there are enough."""
    separate = kind == "comparison" and not plan.foreign_urls
    return chosen_cores(load_stack_settings().values, runtime.cpus(), separate=separate)


def run_all(runtime: Runtime, plan: Plan, options: RunOptions) -> Iterator[RunRecord]:
    """Runs every cell in order, yielding each record; one that cannot be run ends it.

    Raises LabError or RunInterruptedError.
    """
    state = begin("run", plan, options, _cells(plan))
    with open_session(runtime, plan, options, state) as going:
        for cell in state.cells:
            yield going.run(cell)
        going.finish()


def check_plan(plan: Plan, options: RunOptions) -> None:
    """Everything that can be wrong with the plan on this machine. Raises UsageError."""
    check_cells(plan, options, _cells(plan))


def _cells(plan: Plan) -> list[CellState]:
    """The runs of a plan: every variant once a round, so that drift meets all of them."""
    names: list[str | None] = [variant.name for variant in plan.variants]
    return [
        CellState(variant=name, repeat=repeat)
        for repeat in range(1, plan.repeats + 1)
        for name in names or [None]
    ]


def result(records: list[RunRecord]) -> dict[str, Any]:
    """One run: its record. Several: their records under `runs`, with the experiment's name."""
    if len(records) == 1:
        return records[0].to_json()
    return {"experiment": records[0].experiment, "runs": [record.to_json() for record in records]}


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


def told(state: ExperimentState, error: BaseException) -> BaseException:
    """The error as the user gets it: of what another start goes on with, also with which run.

    A search alone knows its next step, and a step in which the target died is no valid run.
    """
    if state.kind == "run" or not isinstance(error, LabError | OSError | KeyboardInterrupt):
        return error
    kind = RunInterruptedError if isinstance(error, KeyboardInterrupt) else LabError
    if isinstance(error, LabError):
        kind = type(error)
    return kind(f"{reason_of(error)}; {_what_comes(state)}")


def _what_comes(state: ExperimentState) -> str:
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
    for record in all_records():
        if record.ended is None:
            record.ended = _last_written(record.folder)
            record.reasons = ["the lab was killed during the run"]
            # A driver that ended after the lab may have left its users' headers.
            for driver in DRIVERS:
                driver.remove_secrets(record.folder)
            record.save()
            write_history(record, influxdb)
    for state in all_states():
        if state.state == "going":
            state.state, state.reason = "stopped", "the lab was killed"
            state.ended = _last_written(state.folder)
            state.save()


def _last_written(folder: Path) -> datetime:
    """When the run, or the experiment, last wrote a file."""
    written = max(path.stat().st_mtime for path in folder.iterdir())
    return datetime.fromtimestamp(written, UTC)
