"""A session: the lab to itself for the runs of one experiment, and their state kept on disk."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

from spikelab import preflight
from spikelab.abandoned import close_abandoned
from spikelab.console import say
from spikelab.errors import LabError
from spikelab.experiments.beginning import check_attempts, take
from spikelab.experiments.cell_plans import (
    builds_of,
    cores_of,
    plan_of,
    plans_of,
    start_differently,
    variant_of,
)
from spikelab.experiments.cells import Cell
from spikelab.experiments.state import CellState, ExperimentState
from spikelab.experiments.stops import reason_of, told
from spikelab.locks import only_run
from spikelab.plans.load import PlanSource
from spikelab.plans.model import Plan
from spikelab.record import RunRecord, now, read_record
from spikelab.run import Run, RunOptions
from spikelab.runtime import Runtime
from spikelab.runtime.builds import build_of
from spikelab.stores.watch import Stores
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
        # Where some runs restart the target, all do: a warm one would be ahead of a cold one.
        self._fresh = start_differently(source)
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
            fresh=self._fresh,
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
        check_attempts(cell)
    with suppress(OSError):
        session.stop(reason_of(error))
    return told(session.state, error)


def _kept(state: ExperimentState) -> bool:
    """A single run needs no state: its record says all."""
    return state.kind != "run" or len(state.cells) > 1
