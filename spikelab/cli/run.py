"""The commands that run one plan or list what there is: run, runs, plans, and demo, a spike whose
fate one Tomcat setting decides."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from spikelab import history, paths
from spikelab.cli import output
from spikelab.cli.app import (
    DriverOption,
    JsonOption,
    LabelOption,
    OwnTargetOption,
    PresetOption,
    RuntimeOption,
    SetOption,
    SinkOption,
    TargetSetOption,
    command,
    history_app,
    run_options,
)
from spikelab.cli.output import dashboard_url, exit_code, say_report
from spikelab.cli.stack import running, start
from spikelab.comparison.pairing import baselines
from spikelab.console import out, say
from spikelab.errors import LabError
from spikelab.experiments.session import close_abandoned
from spikelab.experiments.sweep import each_variant, run_each
from spikelab.plans.estimate import estimate
from spikelab.plans.load import load_plan, plan_files
from spikelab.report.tables import Marked, Table, print_table
from spikelab.results.run import RunRecord
from spikelab.run import RunOptions
from spikelab.stack import current
from spikelab.stack.base import Runtime
from spikelab.stack.locks import active_run, no_run
from spikelab.stores import InfluxDB
from spikelab.units import show_value


@command("demo")
def demo(runtime: RuntimeOption = None, json_file: JsonOption = None) -> None:
    """Start the stack and run 1,000 users on 200 worker threads, then on 500."""
    output.prepare(json_file)
    started = start(runtime)
    plan = load_plan("demo")
    say(f"demo: {plan.about}")
    _finish(started, run_each(each_variant(plan, RunOptions()), started), json_file)


@command("run")
def run(
    plan: Annotated[str, typer.Argument(help="a ready plan's name, or a file")],
    preset: PresetOption = None,
    assignments: SetOption = None,
    target_settings: TargetSetOption = None,
    labels: LabelOption = None,
    json_file: JsonOption = None,
    driver: DriverOption = None,
    sinks: SinkOption = None,
    live: Annotated[bool, typer.Option(help="serve k6's own dashboard during the run")] = False,
    i_own_this_target: OwnTargetOption = False,
) -> None:
    """Run a plan and judge it. Exit 0: within the SLO, 99: missed, 3: inconclusive."""
    asked = load_plan(plan, assignments or [], driver, sinks or [], preset)
    options = run_options(labels, target_settings, i_own_this_target, live)
    output.prepare(json_file)
    experiment = each_variant(asked, options)
    experiment.check()
    runtime = running()
    _finish(runtime, run_each(experiment, runtime), json_file)


def _finish(runtime: Runtime, runs: Iterator[RunRecord], json_file: Path | None) -> NoReturn:
    """Runs, then shows what there is, also when a later run fails; ends with the worst verdict."""
    records: list[RunRecord] = []
    try:
        records.extend(runs)
    finally:
        if records:
            _show(runtime, records, json_file)
    raise typer.Exit(exit_code(records))


def _show(runtime: Runtime, records: list[RunRecord], json_file: Path | None) -> None:
    output.show_results(records)
    grafana = runtime.endpoints().grafana
    for record in records:
        if grafana:
            out.print(f"dashboard  {dashboard_url(grafana, record)}")
        out.print(f"record     {paths.shown(record.folder / 'run.json')}")
    if json_file is not None:
        output.write_or_warn(json_file, _result(records))
    say_report(records[0].experiment or records[0].testid)


def _result(records: list[RunRecord]) -> dict[str, Any]:
    """One run: its record. Several: their records under `runs`, with the experiment's name."""
    if len(records) == 1:
        return records[0].to_json()
    return {"experiment": records[0].experiment, "runs": [record.to_json() for record in records]}


@command("runs")
def runs() -> None:
    """List the recorded runs, newest first."""
    with no_run() as idle:
        if idle:
            close_abandoned(current().endpoints().influxdb)
    output.show_runs(list(RunRecord.read_all()))
    for plan, name in baselines().items():
        out.print(f"baseline of {plan}: {name}")


@command("rebuild", of=history_app)
def rebuild_history() -> None:
    """Write every ended run in results/ to InfluxDB again."""
    with no_run() as idle:
        if not idle:
            # Writing would be measured beside its load.
            raise LabError(f"a run is going: {active_run()}: wait for it, or stop it with Ctrl-C")
        influxdb = current().endpoints().influxdb
        if influxdb is None:
            raise LabError("InfluxDB is not running: ./lab up starts it")
        runs, points = history.rebuild(InfluxDB(influxdb))
    say(f"wrote {points:,} points of {runs:,} runs to InfluxDB")


@command("plans")
def plans() -> None:
    """List the ready plans."""
    rows = [row for name in plan_files() for row in _plan_rows(name)]
    print_table(Table("Plans", ("plan", "takes", "what it does, and how to change it"), rows))


def _plan_rows(name: str) -> Iterator[tuple[str, str, str]]:
    plan = load_plan(name)
    yield name, str(estimate(plan)), plan.about
    for preset, what in plan.presets.items():
        takes = str(estimate(load_plan(name, preset=preset)))
        yield "", Marked(takes, "aside"), Marked(f"--preset {preset}: {what.about}", "aside")
    if plan.parameters:
        values = [f"{key}={show_value(each.default)}" for key, each in plan.parameters.items()]
        yield "", "", Marked(f"--set {' '.join(values)}", "aside")
