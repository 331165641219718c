"""How commands that run load end: what they found as tables on the console, the result for a
program to read (`--json`), links into Grafana, the report, the exit code."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from spikelab import console, paths
from spikelab.comparison.pairing import show_place
from spikelab.console import out, warn
from spikelab.errors import EXIT_FAILED, EXIT_INCONCLUSIVE, EXIT_OK, EXIT_SLO_MISSED, UsageError
from spikelab.experiments.sweep import HeldRates, answer, only_rates_differ
from spikelab.prediction.check import as_predicted, predicted_rates
from spikelab.report import experiment_tables, run_tables
from spikelab.report.sentences import held_sentence, search_sentence
from spikelab.report.steps import curves_of_variants
from spikelab.report.tables import print_table
from spikelab.results.comparison import ComparisonRecord
from spikelab.results.experiment import CapacityAnswer, ExperimentState
from spikelab.results.files import json_text, write_json
from spikelab.results.run import RunRecord
from spikelab.stack.base import Runtime

# What `--json` takes for standard output.
_PRINTED = Path("-")
# Room on both sides of a dashboard's range, so that the first and last moments are not cut off.
_MARGIN_MS = 2000


def exit_code(records: Iterable[RunRecord]) -> int:
    """The worst of these runs decides."""
    found = list(records)
    if not all(record.valid for record in found):
        return EXIT_FAILED
    verdicts = {record.verdict for record in found}
    if "fail" in verdicts:
        return EXIT_SLO_MISSED
    return EXIT_INCONCLUSIVE if "inconclusive" in verdicts else EXIT_OK


def show_results(records: Sequence[RunRecord]) -> None:
    """One column a run, so that several stand side by side; before it each run's phases, after it
    the parts of the response time."""
    for record in records:
        if len(record.steps) > 1:
            out.print(f"{run_tables.name_in_result(record)}:")
            print_table(run_tables.phases(record.steps))
    print_table(run_tables.result(records))
    if parts := run_tables.parts(records):
        out.print(f"{parts.title}, means:")
        print_table(parts)


def show_runs(records: Sequence[RunRecord]) -> None:
    """A row a run."""
    print_table(run_tables.run_list(records))


def show_sweep(state: ExperimentState) -> None:
    """By rate where rates are all that differs; else a row a run, and spikes beside predictions."""
    records = list(state.records())
    if only_rates_differ(records):
        show_rates(records, answer(records).variants)
    elif records:
        print_table(experiment_tables.cells(state))
        if predictions := run_tables.predictions_by_difference(records):
            print_table(predictions)
            out.print(as_predicted([record for record in records if record.prediction]))


def show_rates(records: Sequence[RunRecord], answers: Mapping[str, HeldRates]) -> None:
    """A row a rate of each variant, then what each variant holds, in a line."""
    figures = ("started/s", "achieved/s", "success", "p95")
    print_table(experiment_tables.rates(curves_of_variants(records), *figures))
    predicted = predicted_rates(records)
    for variant, held in answers.items():
        out.print(f"{variant or 'it'}: {held_sentence(held, predicted.get(variant))}")


def show_capacity(answer: CapacityAnswer, records: Sequence[RunRecord]) -> None:
    """A row a step, then the answer in a line. `records`: of its runs."""
    print_table(experiment_tables.search_by_value(answer))
    out.print(search_sentence(answer, records))
    if answer.overload:
        out.print(str(answer.overload))


def show_comparison(record: ComparisonRecord) -> None:
    """A row a metric and place; then what spoiled pairs, and what it means, in a line."""
    out.print(f"A  {record.a.name}\nB  {record.b.name}")
    print_table(experiment_tables.metrics(record, "A", "B"))
    for result in record.results:
        if result.reason:
            out.print(f"why        {experiment_tables.metric_at_place(result)}: {result.reason}")
    for each in record.left_out:
        where = " ".join(filter(None, [show_place(each.place), f"#{each.repeat}"]))
        out.print(f"left out   {where}: {each.reason}")
    for note in record.notes:
        out.print(f"note       {note}")
    if noise := experiment_tables.noise(record):
        print_table(noise)
    out.print(record.summary)


def say_experiment(runtime: Runtime, state: ExperimentState) -> None:
    """Where an experiment's runs and its state are."""
    if grafana := runtime.endpoints().grafana:
        link = runs_url(grafana, state.plan, state.started, state.ended)
        out.print(f"dashboard  {link}")
    out.print(f"experiment {paths.shown(state.folder / state.FILE)}")


def say_report(name: str) -> None:
    """Writes the report of a run or an experiment and says where it is. Its failure is a warning:
    what was measured is there without it. `LAB_REPORT=none` leaves it out."""
    asked = os.environ.get("LAB_REPORT")
    if asked == "none":
        return
    if asked:
        warn(f"LAB_REPORT={asked}: unknown, so there is a report: none leaves it out")
    try:
        # It takes a while to import, and draws.
        from spikelab.report.formats import write_report  # noqa: PLC0415

        path = write_report(name)
    except Exception as error:
        warn(f"no report of {name}: {type(error).__name__}: {error}")
        return
    out.print(f"report     {paths.shown(path)}")


def prepare(json_file: Path | None) -> None:
    """Before anything starts: the result can be written there. Raises UsageError.

    Where it is to be printed, standard output is left to it alone.
    """
    if json_file is None:
        return
    if json_file == _PRINTED:
        console.answer_on_stderr()
        return
    folder = json_file.resolve().parent
    if not json_file.name or json_file.is_dir():
        raise UsageError(f"--json {json_file}: this is a folder, not a file")
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(f"--json {json_file}: there is no folder {folder} that can be written to")


def write_result(json_file: Path, result: object) -> None:
    """Raises OSError."""
    if json_file == _PRINTED:
        sys.stdout.write(json_text(result))
        sys.stdout.flush()
    else:
        write_json(json_file, result)


def write_or_warn(json_file: Path, result: object) -> None:
    """Of a run: that it cannot be written does not change what was measured."""
    try:
        write_result(json_file, result)
    except OSError as error:
        console.warn(f"--json {json_file}: {error.strerror}")


def dashboard_url(grafana: str, record: RunRecord) -> str:
    """The dashboard on exactly the run's time range and testid."""
    shown = _range(record.started, record.ended)
    return f"{grafana}/d/load-test?{shown}&var-testid={record.testid}"


def runs_url(grafana: str, plan: str, started: datetime, ended: datetime | None) -> str:
    """The list of a plan's runs of that time."""
    return f"{grafana}/d/runs?{_range(started, ended)}&var-plan={plan}"


def _range(started: datetime, ended: datetime | None) -> str:
    end = "now" if ended is None else str(int(ended.timestamp() * 1000) + _MARGIN_MS)
    return f"from={int(started.timestamp() * 1000) - _MARGIN_MS}&to={end}"
