"""`./lab import`: reports of other tools become runs, and are judged where objectives are given."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from spikelab.cli import output
from spikelab.cli.app import command
from spikelab.cli.output import write_result
from spikelab.console import say
from spikelab.errors import UsageError, did_you_mean
from spikelab.experiments import sweep
from spikelab.importers import FORMATS
from spikelab.importers.runs import import_reports
from spikelab.objectives import Objective, parse_objective
from spikelab.results.run import RunRecord
from spikelab.units import plural


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
    output.prepare(json_file)
    run(format_name, path, slo or [], json_file)


def run(format_name: str, path: Path, slo: Sequence[str], json_file: Path | None) -> None:
    """Imports a file or a folder. Raises UsageError, and has then written nothing."""
    if format_name not in FORMATS:
        raise UsageError(f"unknown format '{format_name}'{did_you_mean(format_name, FORMATS)}")
    if json_file is not None and not slo:
        raise UsageError(f"--json {json_file}: there is nothing to judge: add --slo 'p95 < 1s'")
    objectives = _objectives(slo)
    records, new = import_reports(FORMATS[format_name], path, objectives)
    there = len(records) - new
    say(f"imported {plural(new, 'run')}{f', {there} there already' if there else ''}")
    if objectives:
        _show_rates(records, json_file)
    else:
        output.show_runs(records)


def _objectives(slo: Sequence[str]) -> list[Objective]:
    try:
        return [parse_objective(text.strip()) for text in slo]
    except ValueError as error:
        raise UsageError(f"--slo: {error}") from error


def _show_rates(records: Sequence[RunRecord], json_file: Path | None) -> None:
    """Which rates were held, as a table and, where it is asked for, as JSON."""
    held = sweep.answer(records)
    output.show_rates(records, held.variants)
    if json_file is not None:
        write_result(json_file, held.model_dump())
