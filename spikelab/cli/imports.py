"""`./lab import`: reports of other tools become runs, and are judged where objectives are given."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from spikelab import paths
from spikelab.cli import output
from spikelab.cli.app import command
from spikelab.cli.output import write_result
from spikelab.console import say
from spikelab.errors import UsageError, did_you_mean, printable
from spikelab.experiments.sweep import Rates, by_variant, held_rates
from spikelab.importers import FORMATS, common
from spikelab.importers.common import (
    Format,
    Imported,
    ReportError,
    build_record,
    digest_of,
    find_record,
)
from spikelab.objectives import Objective, parse_objective
from spikelab.report import tables
from spikelab.report.tables import show_rates
from spikelab.results.experiment import CellState, ExperimentState, read_state
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


_LONGEST_MESSAGE = 400


def run(format_name: str, path: Path, slo: Sequence[str], json_file: Path | None) -> None:
    """Imports a file or a folder. Raises UsageError, and has then written nothing."""
    if format_name not in FORMATS:
        raise UsageError(f"unknown format '{format_name}'{did_you_mean(format_name, FORMATS)}")
    if json_file is not None and not slo:
        raise UsageError(f"--json {json_file}: there is nothing to judge: add --slo 'p95 < 1s'")
    objectives = _objectives(slo)
    format_ = FORMATS[format_name]
    found = [_read(format_, source) for source in common.find(path, format_)]
    if objectives:
        for imported in found:
            _check_can_be_judged(imported, objectives)
    records = _save(found, objectives)
    _keep_together(records, objectives)
    if objectives:
        _judge(records, json_file)
    else:
        tables.show_runs(records)


def _objectives(slo: Sequence[str]) -> list[Objective]:
    try:
        return [parse_objective(text.strip()) for text in slo]
    except ValueError as error:
        raise UsageError(f"--slo: {error}") from error


def _read(format_: Format, source: common.ReportSource) -> Imported:
    text = source.read()
    try:
        report = format_.parse(text)
    except ReportError as error:
        said = printable(str(error))[:_LONGEST_MESSAGE]
        raise UsageError(f"{paths.shown(source.path)}: {said}") from error
    return Imported(format_.name, source, report, digest_of(format_.name, source, text))


def _check_can_be_judged(imported: Imported, objectives: Sequence[Objective]) -> None:
    name = paths.shown(imported.source.path)
    if imported.source.variant is None:
        raise UsageError(f"{name}: --slo judges rates: name the file {common.NAMING}")
    known = imported.report.latency_seconds.model_dump(exclude_none=True)
    for objective in objectives:
        if objective.key != "success" and objective.key not in known:
            has = ", ".join(key.replace("_", ".") for key in known if key != "max")
            raise UsageError(
                f"{name}: this report has no {objective.key.replace('_', '.')}, which "
                f"--slo '{objective.text}' asks for (it has: {has or 'none'})"
            )


def _save(found: Sequence[Imported], objectives: Sequence[Objective]) -> list[RunRecord]:
    """The runs' records. One that is there already stays, but takes the verdict of a new SLO."""
    earlier = {imported.digest: find_record(imported) for imported in found}
    experiment = _experiment(found, earlier.values())
    records = []
    for imported in found:
        record = earlier[imported.digest]
        if record is None or objectives:
            record = build_record(imported, objectives, record)
            record.experiment = record.experiment or experiment
            record.save()
        records.append(record)
    new = sum(record is None for record in earlier.values())
    there = len(found) - new
    say(f"imported {plural(new, 'run')}{f', {there} there already' if there else ''}")
    return records


def _experiment(found: Sequence[Imported], earlier: Iterable[RunRecord | None]) -> str | None:
    """What the runs of a folder have in common; a folder that has grown stays one experiment."""
    if len(found) < 2:
        return None
    for record in earlier:
        if record and record.experiment:
            return record.experiment
    together = hashlib.sha256("".join(each.digest for each in found).encode()).hexdigest()
    return f"{found[0].source.group}-{together[:12]}"


def _keep_together(records: Sequence[RunRecord], objectives: Sequence[Objective]) -> None:
    """The state of the sweep that a folder's runs are, so that a report of it can be made. Runs
    that are there already keep theirs, unless they are judged anew."""
    experiment = records[0].experiment
    if experiment is None or (read_state(experiment) and not objectives):
        return
    cells = [
        CellState(
            values={} if step.offered_rate is None else {"rate": step.offered_rate},
            variant=step.variant,
            repeat=step.repeat,
            testid=record.testid,
        )
        for record in records
        for step in record.steps
    ]
    answers = {name: held_rates(rates) for name, rates in _rates(records).items()}
    ExperimentState(
        experiment=experiment,
        kind="sweep",
        plan=records[0].plan,
        about="imported",
        digest=experiment.rpartition("-")[2],
        slo=[objective.text for objective in objectives],
        started=min(record.started for record in records),
        ended=max(record.ended or record.started for record in records),
        state="finished",
        order="imported",
        cells=cells,
        answer={"variants": {name: each.model_dump() for name, each in answers.items()}},
    ).save()


def _rates(records: Sequence[RunRecord]) -> dict[str, Rates]:
    return by_variant(step for record in records for step in record.steps)


def _judge(records: Sequence[RunRecord], json_file: Path | None) -> None:
    variants = _rates(records)
    answers = {variant: held_rates(rates) for variant, rates in variants.items()}
    show_rates(variants, answers, predicted={})
    if json_file is not None:
        write_result(
            json_file, {"variants": {name: each.model_dump() for name, each in answers.items()}}
        )
