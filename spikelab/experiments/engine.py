"""The runs of a plan: its variants and repeats one after another, each with a record of its own."""

from collections.abc import Iterator
from typing import Any

from spikelab.experiments import beginning, session
from spikelab.experiments.state import CellState
from spikelab.plans.load import PlanSource
from spikelab.record import RunRecord
from spikelab.run import RunOptions
from spikelab.runtime import Runtime


def run_all(runtime: Runtime, source: PlanSource, options: RunOptions) -> Iterator[RunRecord]:
    """Runs every cell in order, yielding each record; one that cannot be run ends it.

    Raises LabError or RunInterruptedError.
    """
    state = beginning.begin("run", source, options, _cells(source))
    with session.open_session(runtime, source, options, state) as going:
        for cell in state.cells:
            yield going.run(cell)
        going.finish()


def check(source: PlanSource, options: RunOptions) -> None:
    """Everything that can be wrong with the plan on this machine. Raises UsageError."""
    beginning.check(source, options, _cells(source))


def _cells(source: PlanSource) -> list[CellState]:
    """The runs of a plan: every variant once a round, so that drift meets all of them."""
    plan = source.plan()
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
