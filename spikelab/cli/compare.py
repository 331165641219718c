"""The command compare."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from spikelab import json_result, paths
from spikelab.cli.app import command
from spikelab.cli.options import (
    DriverOption,
    LabelOption,
    OwnTargetOption,
    PresetOption,
    SetOption,
    TargetSetOption,
    run_options,
)
from spikelab.cli.results import say_experiment, say_report
from spikelab.cli.stack import running
from spikelab.cli.sweep import FreshOption, say_what_comes
from spikelab.comparison.model import ComparisonRecord
from spikelab.comparison.question import METRICS, Asked
from spikelab.console import out
from spikelab.errors import EXIT_INCONCLUSIVE, EXIT_OK, EXIT_SLO_MISSED, UsageError
from spikelab.experiments import beginning, session, sweep
from spikelab.history import write_confidence
from spikelab.plans.load import PlanSource, open_plan, plan_files
from spikelab.record import read_record
from spikelab.run import RunOptions
from spikelab.runtime.choice import current
from spikelab.stores.influxdb import InfluxDB

# What judges needs SciPy, which takes a while to import: functions import it where they need it.


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

    Exit 0: better, equivalent or without a verdict; 99: worse; 3: inconclusive.
    """
    json_result.prepare(json_file)
    asked = Asked(primary, metrics, margin, at or [])
    plan = _plan_among(names or [])
    if plan is not None and baseline is None:
        options = run_options(labels, target_settings, i_own_this_target)
        source = open_plan(plan, assignments or [], driver, (), preset)
        _finish(_of_plan(source, options, asked, _Sides(aa, a, b or []), fresh), json_file)
    _refuse_what_plans_take(
        {"--aa": aa, "--a": a, "--b": b, "--preset": preset, "--set": assignments}
        | {"--target-set": target_settings, "--label": labels, "--driver": driver}
        | {"--fresh": fresh}
    )
    if baseline is not None:
        if json_file or asked != Asked(None, None, None, []):
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
    from spikelab.comparison.sources import mark_baseline  # noqa: PLC0415

    if others:
        raise UsageError(f"--baseline {name}: this marks it alone: leave out {' '.join(others)}")
    arm = mark_baseline(name)
    out.print(f"{arm.name} is the baseline of {arm.plan}")


def _of_finished(names: Sequence[str], asked: Asked) -> ComparisonRecord:
    from spikelab.comparison import answer, sources  # noqa: PLC0415

    if not 1 <= len(names) <= 2:
        raise UsageError("name a plan, two things to compare, or one: ./lab compare --help")
    a, b = sources.two_arms(names)
    return answer.compare(a, b, asked.of_runs(b.plan))


def _of_plan(
    source: PlanSource, options: RunOptions, asked: Asked, sides: _Sides, fresh: bool
) -> list[ComparisonRecord]:
    """Runs what is left of the comparison, and judges it."""
    from spikelab.comparison import experiment  # noqa: PLC0415

    question = asked.of(source.plan().compare)
    if sides.identical:
        if sides.a or sides.b:
            raise UsageError("--aa: identical arms are the plan's first variant: no --a, no --b")
        source = experiment.identical(source, question)
    else:
        source = experiment.sides(source, sides.a, sides.b)
    state = experiment.new_state(source, options, question)
    beginning.check(source, options, state.cells)
    runtime = running()
    if not fresh:
        state = beginning.resume("comparison", source, options) or state
    seconds = sweep.planned(source, state)
    say_what_comes(state, seconds)
    with session.open_session(runtime, source, options, state) as going:
        sweep.run_cells(going, seconds)
        if sides.identical:
            records = [experiment.noise_answer(state, question)]
        else:
            records = experiment.answer(state, source, question)
        state.answer = experiment.kept_answer(records)
        sweep.end(going)
    say_experiment(runtime, state)
    return records


def _finish(records: Sequence[ComparisonRecord], json_file: Path | None) -> NoReturn:
    """Keeps, shows and reports the comparisons; ends with the worst verdict."""
    from spikelab.comparison.answer import overall  # noqa: PLC0415
    from spikelab.comparison.table import show_comparison  # noqa: PLC0415

    for record in records:
        path = record.save()
        _keep_confidence(record)
        show_comparison(record)
        out.print(f"comparison {paths.shown(path)}")
        say_report(record.comparison)
    if json_file is not None:
        found = [record.to_json() for record in records]
        json_result.write_or_warn(
            json_file, found[0] if len(found) == 1 else {"comparisons": found}
        )
    verdict = None if records[0].noise else overall(records)
    codes = {"worse": EXIT_SLO_MISSED, "inconclusive": EXIT_INCONCLUSIVE}
    raise typer.Exit(codes.get(verdict or "", EXIT_OK))


def _keep_confidence(record: ComparisonRecord) -> None:
    """In the history of B's runs. Identical arms say nothing of a run, nor do imported ones have a
    history."""
    from spikelab.comparison.sentences import confidence  # noqa: PLC0415

    influxdb = current().endpoints().influxdb
    if record.deciding is None or record.noise or influxdb is None:
        return
    runs = [run for name in record.b.runs if (run := read_record(name)) and not run.imported]
    write_confidence(runs, confidence(record.deciding), InfluxDB(influxdb))
