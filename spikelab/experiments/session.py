"""A session: the lab to itself for the runs of one experiment, and their state kept on disk."""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

from spikelab import preflight
from spikelab.abandoned import close_abandoned
from spikelab.console import say
from spikelab.errors import LabError, UsageError
from spikelab.experiments.cell_plans import builds_of, cores_of, plan_of, plans_of, variant_of
from spikelab.experiments.cells import Cell, cell_name
from spikelab.experiments.state import CellState, ExperimentState, Kind, all_states, read_record
from spikelab.experiments.stops import reason_of, told
from spikelab.locks import only_run
from spikelab.plans.load import PlanSource
from spikelab.plans.model import Plan
from spikelab.record import RunRecord, now
from spikelab.run import Run, RunOptions, identity
from spikelab.runtime import Runtime
from spikelab.runtime.builds import build_of, fingerprint
from spikelab.stores.prometheus import Prometheus
from spikelab.stores.watch import Stores
from spikelab.target_figures import settle
from spikelab.units import parse_duration


class Session:
    """Runs cells. `state` is saved after each; a cell's earlier attempts stay in it."""

    def __init__(
        self,
        runtime: Runtime,
        source: PlanSource,
        options: RunOptions,
        state: ExperimentState,
        announce: Callable[[str], None],
    ) -> None:
        self.state = state
        self.plan = source.plan()
        self._runtime = runtime
        self._source = source
        self._options = options
        self._announce = announce
        self._cores = cores_of(runtime, self.plan, state.kind)
        # `./lab run` measures without a store as well as it can; the others need each run whole.
        self._stores = Stores.of(runtime.endpoints()) if state.kind != "run" else Stores()
        self._resting_until = now()

    def run(self, cell: CellState) -> RunRecord:
        """Runs a cell, of the state or new to it, and returns its record: when that is valid, the
        cell is done.

        Raises LabError when it cannot be run, RunInterruptedError when the user stopped it.
        """
        if not any(cell is known for known in self.state.cells):
            self.state.cells.append(cell)
        self._stores.require()
        plan = plan_of(self._source, self.plan, cell)
        self._rest()
        run = Run(self._runtime, plan, self._options, self._cell(plan, cell), self._stores)
        self._announce(run.testid)
        # Before it starts: a lab that is killed in it leaves the attempt behind.
        cell.attempts.append(run.testid)
        self.save()
        try:
            record = run.go()
        finally:
            self._resting_until = now() + timedelta(seconds=parse_duration(plan.cool_down))
        _take(cell, record)
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
        """The stores are there that earlier runs had, and scrapes come in. Raises LabError."""
        if not self._stores.health:
            return
        missing = [name for name in self.state.stores if name not in self._stores.health]
        if missing:
            raise LabError(
                f"{', '.join(missing)} is not running, as it was before: ./lab up starts it"
            )
        self.state.stores = list(self._stores.health)
        self._stores.require()
        # A Prometheus that has just been started would miss the beginning of the first run.
        settle(Prometheus(self._runtime.endpoints().prometheus), now())

    def _cell(self, plan: Plan, cell: CellState) -> Cell:
        variant = variant_of(self.plan, cell.variant)
        return Cell(
            variant=variant,
            settings=preflight.target_settings(plan, variant, self._options.target_settings),
            repeat=cell.repeat,
            experiment=self.state.experiment if _kept(self.state) else None,
            values=cell.values,
            build=build_of(variant, self._source.path) if variant else None,
            cores=self._cores,
        )

    def _rest(self) -> None:
        seconds = (self._resting_until - now()).total_seconds()
        if seconds > 0:
            say(f"cooling down for {seconds:.0f} s")
            time.sleep(seconds)


@contextmanager
def open_session(
    runtime: Runtime, source: PlanSource, options: RunOptions, state: ExperimentState
) -> Iterator[Session]:
    """The lab to itself for this experiment, checked and ready to run its cells.

    An error in the block is kept in the state as the reason why it stopped, and says with which
    run the same command goes on.
    """
    with only_run() as announce:
        _prepare(runtime, source, state)
        state.state, state.reason, state.ended = "going", None, None
        session = Session(runtime, source, options, state, announce)
        try:
            session.require_stores()
            session.save()
            yield session
        except (Exception, KeyboardInterrupt) as error:
            stopped = _stop(session, error)
            if stopped is error:
                raise
            raise stopped from error


def _prepare(runtime: Runtime, source: PlanSource, state: ExperimentState) -> None:
    for build in builds_of(source):
        runtime.require_build(build)
    plans = plans_of(source, state.cells) or [source.plan()]
    components = list(dict.fromkeys(name for plan in plans for name in plan.components))
    if components:
        runtime.require(components)
    # Plans differ in little: asking the runtime takes a moment.
    for plan in {(*plan.components, bool(plan.foreign_urls)): plan for plan in plans}.values():
        preflight.require_stack(runtime, plan)
    close_abandoned(runtime.endpoints().influxdb)


def _stop(session: Session, error: BaseException) -> BaseException:
    """Keeps in the state why it ends, where that can be written; gives the error to raise."""
    for cell in session.state.cells:
        _check(cell)
    with suppress(OSError):
        session.stop(reason_of(error))
    return told(session.state, error)


def _kept(state: ExperimentState) -> bool:
    """A single run needs no state: its record says all."""
    return state.kind != "run" or len(state.cells) > 1


def _take(cell: CellState, record: RunRecord) -> None:
    if record.valid:
        cell.testid = record.testid
        cell.attempts = [testid for testid in cell.attempts if testid != record.testid]


def begin(
    kind: Kind,
    source: PlanSource,
    options: RunOptions,
    cells: Sequence[CellState] = (),
    *,
    seed: int | None = None,
    order: str = "as-written",
) -> ExperimentState:
    """A new experiment of these cells, in the order of their runs; nothing is written yet.

    `seed`: the one in use, also where it was drawn.
    """
    plan = source.plan()
    return ExperimentState(
        experiment=identity(plan.name),
        kind=kind,
        plan=plan.name,
        about=plan.about,
        digest=digest(kind, source, options),
        labels=dict(options.labels),
        seed=seed,
        order=order,
        slo=list(plan.slo),
        started=now(),
        cells=list(cells),
    )


def resume(kind: Kind, source: PlanSource, options: RunOptions) -> ExperimentState | None:
    """The newest experiment of the same command that is not finished; None without one.

    Its cells are as their records say: a run that ended just before the lab was killed counts,
    and one whose record is gone does not.
    """
    wanted = digest(kind, source, options)
    for state in all_states():
        if state.kind == kind and state.digest == wanted:
            if state.state == "finished":
                return None
            for cell in state.cells:
                _check(cell)
            return state
    return None


def _check(cell: CellState) -> None:
    tried = [*cell.attempts, *([cell.testid] if cell.testid else [])]
    records = [record for testid in tried if (record := read_record(testid)) is not None]
    cell.testid = None
    # One without a record was never begun.
    cell.attempts = [record.testid for record in records]
    for record in records:
        _take(cell, record)


def digest(kind: Kind, source: PlanSource, options: RunOptions) -> str:
    """Of all that makes two commands the same experiment. A hash: headers may hold a token."""
    given = {
        "kind": kind,
        "plan": source.data,
        "values": source.values,
        "sinks": list(source.sinks),
        "target settings": options.target_settings,
        "labels": options.labels,
        "builds": [fingerprint(build) for build in builds_of(source)],
    }
    text = json.dumps(given, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def check(source: PlanSource, options: RunOptions, cells: Sequence[CellState]) -> None:
    """Everything that can be wrong with these runs on this machine. Raises UsageError."""
    base = source.plan()
    urls: set[str] = set()
    builds_of(source)
    for cell in {cell_name(cell.values, cell.variant, 0): cell for cell in cells}.values():
        plan = plan_of(source, base, cell)
        preflight.target_settings(plan, variant_of(base, cell.variant), options.target_settings)
        if options.live and plan.driver != "k6":
            raise UsageError("--live: only k6 has a dashboard of its own for a run")
        preflight.require_users(plan.users)
        urls |= plan.foreign_urls
    for url in sorted(urls):
        preflight.require_target(url, options.own_target_elsewhere)
