"""The command capacity."""

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
    TargetSetOption,
    run_options,
)
from spikelab.cli.results import say_experiment, say_report
from spikelab.cli.stack import running
from spikelab.cli.sweep import FreshOption, write_experiment
from spikelab.console import say
from spikelab.errors import EXIT_INCONCLUSIVE, EXIT_OK
from spikelab.experiments import beginning
from spikelab.plans.load import open_plan


@command("capacity")
def capacity(
    plan: Annotated[str, typer.Argument(help="a ready plan's name, or a file")] = "capacity",
    preset: PresetOption = None,
    assignments: SetOption = None,
    target_settings: TargetSetOption = None,
    limits: Annotated[
        list[str] | None,
        typer.Option("--limit", metavar="LIMIT", help="of the target's resources: 'cpu < 80%'"),
    ] = None,
    slo: Annotated[
        list[str] | None,
        typer.Option("--slo", metavar="OBJECTIVE", help="instead of the plan's: 'p95 < 1s'"),
    ] = None,
    driver: DriverOption = None,
    labels: LabelOption = None,
    json_file: JsonOption = None,
    fresh: FreshOption = False,
    i_own_this_target: OwnTargetOption = False,
) -> None:
    """Search the highest rate that meets the SLO and the limits on resources.

    Exit 0: found, 3: inconclusive, or not between the rates that were allowed.
    """
    # SciPy, behind the verdicts, takes half a second to import.
    from spikelab.capacity_table import show_capacity  # noqa: PLC0415
    from spikelab.experiments import capacity as search  # noqa: PLC0415
    from spikelab.experiments.capacity_answer import CapacityAnswer  # noqa: PLC0415
    from spikelab.experiments.capacity_question import Question  # noqa: PLC0415

    source = open_plan(plan, assignments or [], driver, preset=preset)
    question = Question.of(source, limits or [], slo or [])
    options = run_options(labels, target_settings, i_own_this_target)
    json_result.prepare(json_file)
    question.check(options)
    question.warn_of_short_steps()
    runtime = running()
    state = None if fresh else beginning.resume("capacity", question.source, options)
    if state is not None:
        done = len(search.known_steps(question, state))
        say(f"going on with {state.experiment}: {done} steps are done")
    state = state or beginning.begin("capacity", question.source, options)
    try:
        found = search.run(runtime, question, options, state)
    finally:
        # What there is, also when it was stopped.
        if state.answer:
            show_capacity(CapacityAnswer.model_validate(state.answer), list(state.records()))
        if json_file is not None and state.cells:
            write_experiment(json_file, state)
    say_experiment(runtime, state)
    say_report(state.experiment)
    raise typer.Exit(EXIT_OK if found.outcome == "found" else EXIT_INCONCLUSIVE)
