"""The command sweep."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from spikelab import json_result
from spikelab.cli.app import command
from spikelab.cli.options import (
    DriverOption,
    JsonOption,
    LabelOption,
    OwnTargetOption,
    PresetOption,
    SetOption,
    SinkOption,
    TargetSetOption,
    run_options,
)
from spikelab.cli.results import exit_code, say_experiment, say_report
from spikelab.cli.stack import running
from spikelab.console import out, say
from spikelab.errors import EXIT_FAILED, UsageError, did_you_mean
from spikelab.experiments import beginning, session
from spikelab.experiments import sweep as sweeps
from spikelab.experiments.order import ORDERS
from spikelab.experiments.state import ExperimentState
from spikelab.plans.load import PlanSource, open_plan
from spikelab.run import RunOptions
from spikelab.runtime import Runtime
from spikelab.sweep_table import show_sweep
from spikelab.units import show_duration

FreshOption = Annotated[
    bool, typer.Option("--fresh", help="start anew instead of going on where it was interrupted")
]


@command("sweep")
def sweep(
    plan: Annotated[str, typer.Argument(help="a ready plan's name, or a file")],
    preset: PresetOption = None,
    assignments: SetOption = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--values", metavar="KEY=A,B,…", help="what a parameter is set to in turn"),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option("--repeats", min=1, max=1000, help="runs of each cell")
    ] = None,
    order: Annotated[str | None, typer.Option("--order", help=", ".join(ORDERS))] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="by which blocks are shuffled")
    ] = None,
    target_settings: TargetSetOption = None,
    labels: LabelOption = None,
    json_file: JsonOption = None,
    driver: DriverOption = None,
    sinks: SinkOption = None,
    fresh: FreshOption = False,
    i_own_this_target: OwnTargetOption = False,
) -> None:
    """Run a plan over values, variants and repeats; the same command goes on with a stopped one.

    Exit 0: all within the SLO, 99: missed by some, 3: inconclusive, 1: some without a valid run.
    """
    if order is not None and order not in ORDERS:
        raise UsageError(f"--order {order}: unknown order{did_you_mean(order, ORDERS)}")
    changes = sweeps.Changes(values or [], repeats, order, seed)
    source = changes.applied(open_plan(plan, assignments or [], driver, sinks or [], preset))
    options = run_options(labels, target_settings, i_own_this_target)
    json_result.prepare(json_file)
    state = sweeps.new_state(source, options)
    beginning.check(source, options, state.cells)
    runtime = running()
    if not fresh:
        state = beginning.resume("sweep", source, options) or state
    seconds = sweeps.planned(source, state)
    say_what_comes(state, seconds)
    _run(runtime, source, options, state, seconds, json_file)
    raise typer.Exit(_exit_code(state))


def say_what_comes(state: ExperimentState, seconds: Sequence[float]) -> None:
    """Which experiment goes on, how many runs are left and how long they take."""
    done = sum(cell.done for cell in state.cells)
    if done or any(cell.attempts for cell in state.cells):
        say(f"going on with {state.experiment}: {done} of {len(state.cells)} runs are done")
    left = [s for cell, s in zip(state.cells, seconds, strict=True) if not cell.done]
    runs = "1 run" if len(left) == 1 else f"{len(left)} runs"
    say(f"{runs}, about {show_duration(sum(left))}")


def _run(
    runtime: Runtime,
    source: PlanSource,
    options: RunOptions,
    state: ExperimentState,
    seconds: Sequence[float],
    json_file: Path | None,
) -> None:
    """Runs what is left, then shows what there is, also when it was stopped."""
    try:
        with session.open_session(runtime, source, options, state) as going:
            sweeps.run(going, seconds)
    finally:
        if any(cell.done for cell in state.cells):
            show_sweep(state)
            if json_file is not None:
                write_experiment(json_file, state)
    say_experiment(runtime, state)
    say_report(state.experiment)


def write_experiment(json_file: Path, state: ExperimentState) -> None:
    """The state with its runs' records."""
    runs = [record.to_json() for record in state.records()]
    json_result.write_or_warn(json_file, {**state.to_json(), "runs": runs})


def _exit_code(state: ExperimentState) -> int:
    missing = sweeps.without_valid_run(state)
    if missing:
        out.print(f"{state.reason}; the same command tries again")
        return EXIT_FAILED
    return exit_code(state.records())
