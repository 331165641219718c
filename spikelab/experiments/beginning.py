"""An experiment before its runs: a new one, or one that goes on, and what can be wrong with it."""

import hashlib
import json
from collections.abc import Sequence

from spikelab import preflight
from spikelab.errors import UsageError
from spikelab.experiments.cell_plans import builds_of, plan_of, variant_of
from spikelab.experiments.cells import cell_name
from spikelab.experiments.state import CellState, ExperimentState, Kind, all_states
from spikelab.plans.load import PlanSource
from spikelab.record import RunRecord, now, read_record
from spikelab.run import RunOptions, identity
from spikelab.runtime.builds import fingerprint


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
