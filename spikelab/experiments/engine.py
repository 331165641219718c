"""The runs of a plan: its variants and repeats one after another, each with a record of its own."""

from collections.abc import Iterator
from pathlib import Path

from spikelab import preflight
from spikelab.abandoned import close_abandoned
from spikelab.errors import UsageError
from spikelab.experiments.cells import Cell
from spikelab.locks import only_run
from spikelab.plans.model import Plan
from spikelab.record import RunRecord, write_json
from spikelab.run import Run, RunOptions, identity
from spikelab.runtime import Runtime


def run_all(runtime: Runtime, plan: Plan, options: RunOptions) -> Iterator[RunRecord]:
    """Runs every cell in order, yielding each record; one that cannot be run ends it.

    Raises LabError or RunInterruptedError.
    """
    with only_run() as announce:
        if plan.components:
            runtime.require(plan.components)
        preflight.require_stack(runtime, plan)
        close_abandoned(runtime.endpoints().influxdb)
        for cell in _cells(plan, options):
            run = Run(runtime, plan, options, cell)
            announce(run.testid)
            yield run.go()


def check(plan: Plan, options: RunOptions) -> None:
    """Everything that can be wrong with the plan on this machine. Raises UsageError."""
    _cells(plan, options)
    if options.live and plan.driver != "k6":
        raise UsageError("--live: only k6 has a dashboard of its own for a run")
    preflight.require_users(plan.users)
    for url in sorted(plan.foreign_urls):
        preflight.require_target(url, options.own_target_elsewhere)


def _cells(plan: Plan, options: RunOptions) -> list[Cell]:
    """The runs of a plan: every variant once a round, so that drift meets all of them."""
    settings = preflight.target_settings(plan, options.target_settings)
    names: list[str | None] = [variant.name for variant in plan.variants]
    names = names or [None]
    experiment = identity(plan.name) if len(names) * plan.repeats > 1 else None
    return [
        Cell(name, chosen, repeat, experiment, values={})
        for repeat in range(1, plan.repeats + 1)
        for name, chosen in zip(names, settings, strict=True)
    ]


def write_result(path: Path, records: list[RunRecord]) -> None:
    """One run: its record. Several: their records under `runs`, with the experiment's name."""
    if len(records) == 1:
        write_json(path, records[0].to_json())
        return
    write_json(
        path,
        {"experiment": records[0].experiment, "runs": [record.to_json() for record in records]},
    )
