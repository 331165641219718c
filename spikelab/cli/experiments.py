"""The commands for experiments: sweep, capacity, compare."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from spikelab import paths
from spikelab.cli import output
from spikelab.cli.app import (
    DriverOption,
    JsonOption,
    LabelOption,
    OwnTargetOption,
    PresetOption,
    SetOption,
    SinkOption,
    TargetSetOption,
    command,
    run_options,
)
from spikelab.cli.output import exit_code, say_experiment, say_report
from spikelab.cli.stack import running
from spikelab.comparison.experiment import (
    QuestionOptions,
    choose_variants,
    identical_arms,
    new_comparison,
    run_comparison,
)
from spikelab.comparison.looks import look_at
from spikelab.comparison.pairing import mark_baseline, two_arms
from spikelab.comparison.verdict import METRICS, compare_arms, overall
from spikelab.console import out, say
from spikelab.errors import (
    EXIT_FAILED,
    EXIT_INCONCLUSIVE,
    EXIT_OK,
    EXIT_SLO_MISSED,
    UsageError,
    did_you_mean,
)
from spikelab.experiments.capacity import CapacityQuestion, known_steps, search_capacity
from spikelab.experiments.session import Experiment, restarts
from spikelab.experiments.sweep import ORDERS, Changes, new_sweep, run_sweep
from spikelab.history import write_confidence
from spikelab.plans.load import load_plan, plan_files
from spikelab.plans.model import Plan
from spikelab.results.comparison import ComparisonRecord
from spikelab.results.experiment import CapacityAnswer, ExperimentState
from spikelab.run import RunOptions
from spikelab.stack import current
from spikelab.stores import InfluxDB
from spikelab.units import plural, show_duration

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
    changes = Changes(values or [], repeats, order, seed)
    asked = changes.applied(load_plan(plan, assignments or [], driver, sinks or [], preset))
    options = run_options(labels, target_settings, i_own_this_target)
    output.prepare(json_file)
    new = new_sweep(asked, options)
    new.check()
    runtime = running()
    experiment = (None if fresh else new.resumed()) or new
    state = experiment.state
    _say_what_comes(experiment)
    try:
        with experiment.session(runtime) as session:
            run_sweep(session)
    finally:
        # What there is, also when it was stopped.
        if any(cell.done for cell in state.cells):
            output.show_sweep(state)
            if json_file is not None:
                _write_experiment(json_file, state)
    say_experiment(runtime, state)
    say_report(state.experiment)
    if not all(cell.done for cell in state.cells):
        out.print(f"{state.reason}; the same command tries again")
        raise typer.Exit(EXIT_FAILED)
    raise typer.Exit(exit_code(state.records()))


def _say_what_comes(experiment: Experiment) -> None:
    """Which experiment goes on, how many runs are left and how long they take."""
    state = experiment.state
    done = sum(cell.done for cell in state.cells)
    if done or any(cell.attempts for cell in state.cells):
        say(f"going on with {state.experiment}: {done} of {len(state.cells)} runs are done")
    planned = experiment.planned_seconds()
    left = [s for cell, s in zip(state.cells, planned, strict=True) if not cell.done]
    say(f"{plural(len(left), 'run')}, about {show_duration(sum(left))}")


def _write_experiment(json_file: Path, state: ExperimentState) -> None:
    """The state with its runs' records."""
    runs = [record.to_json() for record in state.records()]
    output.write_or_warn(json_file, {**state.to_json(), "runs": runs})


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
    asked = load_plan(plan, assignments or [], driver, preset=preset)
    question = CapacityQuestion.of(asked, limits or [], slo or [])
    options = run_options(labels, target_settings, i_own_this_target)
    output.prepare(json_file)
    question.check(options)
    question.warn_of_short_steps()
    runtime = running()
    new = question.experiment(options)
    experiment = (None if fresh else new.resumed()) or new
    state = experiment.state
    if experiment is not new:
        done = len(known_steps(question, state))
        say(f"going on with {state.experiment}: {done} steps are done")
    try:
        found = search_capacity(experiment, question, runtime)
    finally:
        # What there is, also when it was stopped.
        if state.answer:
            output.show_capacity(CapacityAnswer.model_validate(state.answer), list(state.records()))
        if json_file is not None and state.cells:
            _write_experiment(json_file, state)
    say_experiment(runtime, state)
    say_report(state.experiment)
    raise typer.Exit(EXIT_OK if found.outcome == "found" else EXIT_INCONCLUSIVE)


@command("compare")
def compare(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PLAN | A B | ID",
            help="a plan, to run its variants; two runs, experiments or EXPERIMENT:variant; or "
            "one of these, against the baseline of its plan",
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="ID", help="mark it as its plan's baseline")
    ] = None,
    aa: Annotated[
        bool, typer.Option("--aa", help="run identical arms: the lab's own noise on this machine")
    ] = False,
    primary: Annotated[str | None, typer.Option(help=f"what decides: {', '.join(METRICS)}")] = None,
    metrics: Annotated[
        str | None, typer.Option(metavar="NAME,…", help="what else is compared")
    ] = None,
    margin: Annotated[
        str | None, typer.Option(metavar="SHARE", help="what does not matter, such as 5%")
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option("--at", metavar="KEY=VALUE", help="the swept value that decides"),
    ] = None,
    a: Annotated[str | None, typer.Option("--a", help="the variant that is A")] = None,
    b: Annotated[list[str] | None, typer.Option("--b", help="a variant that is B")] = None,
    looks: Annotated[
        int | None,
        typer.Option("--looks", min=1, max=20, help="verdicts looked for on the way, to end early"),
    ] = None,
    interleaved: Annotated[
        bool, typer.Option("--interleaved", help="imported runs of A and B were taken in turn")
    ] = False,
    mixed_latency: Annotated[
        bool, typer.Option("--mixed-latency", help="compare latencies that are not the same figure")
    ] = False,
    preset: PresetOption = None,
    assignments: SetOption = None,
    target_settings: TargetSetOption = None,
    labels: LabelOption = None,
    driver: DriverOption = None,
    fresh: FreshOption = False,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="write the comparison there too; - prints it"),
    ] = None,
    i_own_this_target: OwnTargetOption = False,
) -> None:
    """Say whether B is better or worse than A, equivalent, or inconclusive.

    Runs that were not taken in turn are set side by side, without a verdict. Exit 0: better or
    equivalent; 99: worse; 3: inconclusive or without a verdict.
    """
    output.prepare(json_file)
    asked = QuestionOptions(primary, metrics, margin, at or [], looks, interleaved, mixed_latency)
    plan = _plan_among(names or [])
    if plan is not None and baseline is None:
        if interleaved or mixed_latency:
            option = "--interleaved" if interleaved else "--mixed-latency"
            raise UsageError(f"{option}: this is for finished runs")
        options = run_options(labels, target_settings, i_own_this_target)
        to_run = load_plan(plan, assignments or [], driver, (), preset)
        _finish(_of_plan(to_run, options, asked, _Sides(aa, a, b or []), fresh), json_file)
    _refuse_what_plans_take(
        {"--aa": aa, "--a": a, "--b": b, "--preset": preset, "--set": assignments}
        | {"--target-set": target_settings, "--label": labels, "--driver": driver}
        | {"--fresh": fresh, "--looks": looks}
    )
    if baseline is not None:
        if json_file or asked != QuestionOptions(at=[]):
            raise UsageError(f"--baseline {baseline}: this only marks it: leave out how to compare")
        _mark(baseline, names or [])
    else:
        _finish([_of_finished(names or [], asked)], json_file)


@dataclass(frozen=True)
class _Sides:
    """Which arms a plan is run with; without any of it the first variant against each other."""

    identical: bool
    a: str | None
    b: Sequence[str]


def _plan_among(names: Sequence[str]) -> str | None:
    """The one name, where it is that of a plan or of a file of one."""
    if len(names) != 1:
        return None
    name = names[0]
    file = name.endswith((".yaml", ".yml")) or "/" in name
    return name if file or name in plan_files() else None


def _refuse_what_plans_take(given: Mapping[str, object]) -> None:
    for option, value in given.items():
        if value:
            raise UsageError(f"{option}: this is for a plan whose variants are run")


def _mark(name: str, others: Sequence[str]) -> None:
    if others:
        raise UsageError(f"--baseline {name}: this marks it alone: leave out {' '.join(others)}")
    arm = mark_baseline(name)
    out.print(f"{arm.name} is the baseline of {arm.plan}")


def _of_finished(names: Sequence[str], asked: QuestionOptions) -> ComparisonRecord:
    if not 1 <= len(names) <= 2:
        raise UsageError("name a plan, two things to compare, or one: ./lab compare --help")
    a, b = two_arms(names)
    question = asked.of_runs(b.plan)
    return compare_arms(a, b, question, look_at(a, b, question))


def _of_plan(
    plan: Plan, options: RunOptions, asked: QuestionOptions, sides: _Sides, fresh: bool
) -> list[ComparisonRecord]:
    """Runs what is left of the comparison, and judges it."""
    question = asked.of(plan.compare)
    if sides.identical:
        if sides.a or sides.b:
            raise UsageError("--aa: identical arms are the plan's first variant: no --a, no --b")
        fresh_target = restarts(plan)
        plan = identical_arms(plan)
    else:
        plan = choose_variants(plan, sides.a, sides.b)
        fresh_target = restarts(plan)
    new = new_comparison(plan, options, question, fresh=fresh_target)
    new.check()
    runtime = running()
    experiment = (None if fresh else new.resumed()) or new
    _say_what_comes(experiment)
    with experiment.session(runtime) as session:
        records = run_comparison(session, question, identical=sides.identical)
    say_experiment(runtime, experiment.state)
    return records


def _finish(records: Sequence[ComparisonRecord], json_file: Path | None) -> NoReturn:
    """Keeps, shows and reports the comparisons; ends with the worst verdict."""
    saved = [(record, record.save()) for record in records]
    for record, path in saved:
        if record.confidence and (influxdb := current().endpoints().influxdb):
            write_confidence(record, InfluxDB(influxdb))
        output.show_comparison(record)
        out.print(f"comparison {paths.shown(path)}")
        say_report(record.comparison)
    if json_file is not None:
        found = [record.to_json() for record in records]
        output.write_or_warn(json_file, found[0] if len(found) == 1 else {"comparisons": found})
    verdict = overall(records)
    codes = {"worse": EXIT_SLO_MISSED, "inconclusive": EXIT_INCONCLUSIVE, None: EXIT_INCONCLUSIVE}
    raise typer.Exit(EXIT_OK if records[0].noise else codes.get(verdict, EXIT_OK))
