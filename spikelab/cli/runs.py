"""Commands for runs: run, demo, runs, plans, import."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from spikelab import demo as demo_command
from spikelab import import_runs, json_result, paths, tables
from spikelab.abandoned import close_abandoned
from spikelab.cli.app import command
from spikelab.cli.options import (
    DriverOption,
    JsonOption,
    LabelOption,
    OwnTargetOption,
    PresetOption,
    RuntimeOption,
    SetOption,
    SinkOption,
    TargetSetOption,
    run_options,
)
from spikelab.cli.results import exit_code, say_report
from spikelab.cli.stack import running, start
from spikelab.comparison.sources import baselines
from spikelab.console import out
from spikelab.experiments import engine
from spikelab.importers.formats import FORMATS
from spikelab.links import dashboard_url
from spikelab.locks import no_run
from spikelab.plans.load import open_plan
from spikelab.record import RunRecord, all_records
from spikelab.runtime import Runtime
from spikelab.runtime.choice import current


@command("demo")
def demo(runtime: RuntimeOption = None, json_file: JsonOption = None) -> None:
    """Start the stack and run 1,000 users on 200 worker threads, then on 500."""
    json_result.prepare(json_file)
    started = start(runtime)
    _finish(started, demo_command.run(started), json_file)


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
    source = open_plan(plan, assignments or [], driver, sinks or [], preset)
    options = run_options(labels, target_settings, i_own_this_target, live)
    json_result.prepare(json_file)
    engine.check(source, options)
    runtime = running()
    _finish(runtime, engine.run_all(runtime, source, options), json_file)


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
    tables.show_results(records)
    grafana = runtime.endpoints().grafana
    for record in records:
        if grafana:
            out.print(f"dashboard  {dashboard_url(grafana, record)}")
        out.print(f"record     {paths.shown(record.folder / 'run.json')}")
    if json_file is not None:
        json_result.write_or_warn(json_file, engine.result(records))
    say_report(records[0].experiment or records[0].testid)


@command("runs")
def runs() -> None:
    """List the recorded runs, newest first."""
    with no_run() as idle:
        if idle:
            close_abandoned(current().endpoints().influxdb)
    tables.show_runs(list(all_records()))
    for plan, name in baselines().items():
        out.print(f"baseline of {plan}: {name}")


@command("plans")
def plans() -> None:
    """List the ready plans."""
    tables.show_plans()


@command("import")
def import_(
    format_name: Annotated[str, typer.Argument(metavar="FORMAT", help=", ".join(FORMATS))],
    path: Annotated[Path, typer.Argument(help="a report, or a folder of reports")],
    slo: Annotated[
        list[str] | None,
        typer.Option("--slo", metavar="OBJECTIVE", help="judge each rate by it: 'p95 < 1s'"),
    ] = None,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="write which rates were held; - prints it"),
    ] = None,
) -> None:
    """Turn reports of vegeta, k6, Locust or Fortio into runs. Exit 0: read, whatever they say."""
    json_result.prepare(json_file)
    import_runs.run(format_name, path, slo or [], json_file)
