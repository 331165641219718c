"""A row a run as CSV, in the form that Apache Otava's CSV importer reads (docs/report.md).

Otava converts every column that it is told to read as a metric: one without a value would stop it,
so a run that is no result has no row, and what was not measured is empty.
"""

import csv
from collections.abc import Callable
from io import StringIO

from spikelab.record import RunRecord, Step
from spikelab.report import words
from spikelab.report.subject import Subject
from spikelab.totals import Totals

Cell = str | int | float | None
_Column = Callable[[RunRecord, Totals], Cell]


def _latency(name: str) -> _Column:
    return lambda record, totals: getattr(totals.latency, name)


def _mean(of: Callable[[Step], float | None]) -> _Column:
    def value(record: RunRecord, totals: Totals) -> Cell:
        """Of the steps' means, weighted by their good answers."""
        known = [(step.requests - step.failures, of(step)) for step in record.steps]
        weight = sum(number for number, figure in known if figure is not None)
        total = sum(number * figure for number, figure in known if figure is not None)
        return total / weight if weight else None

    return value


def _added(of: Callable[[Step], float | None]) -> _Column:
    """Only of one step: rates of several do not add up."""
    return lambda record, totals: of(record.steps[0]) if len(record.steps) == 1 else None


COLUMNS: dict[str, _Column] = {
    "time": lambda record, totals: record.started.isoformat(timespec="seconds"),
    "run": lambda record, totals: record.testid,
    "experiment": lambda record, totals: record.experiment,
    "plan": lambda record, totals: record.plan,
    "driver": lambda record, totals: record.driver,
    "variant": lambda record, totals: words.variant_of(record),
    "repeat": lambda record, totals: record.steps[0].repeat,
    "values": lambda record, totals: words.listed(record.values),
    "labels": lambda record, totals: words.listed(record.labels),
    # Otava's own names for these two.
    "commit": lambda record, totals: record.labels.get("commit"),
    "branch": lambda record, totals: record.labels.get("branch"),
    "verdict": lambda record, totals: record.verdict,
    "requests": lambda record, totals: totals.requests,
    "failures": lambda record, totals: totals.failures,
    "dropped": lambda record, totals: totals.dropped,
    "success": lambda record, totals: totals.success,
    "offered_rate": _added(lambda step: step.offered_rate),
    "started_rate": _added(lambda step: step.started_rate),
    "achieved_rate": _added(lambda step: step.achieved_rate),
    "goodput": _added(lambda step: step.goodput),
    "latency_p50_seconds": _latency("p50"),
    "latency_p90_seconds": _latency("p90"),
    "latency_p95_seconds": _latency("p95"),
    "latency_p99_seconds": _latency("p99"),
    "latency_max_seconds": _latency("max"),
    "latency_mean_seconds": _mean(lambda step: step.latency_mean_seconds),
    "driver_cpu_cores": lambda record, totals: record.generator.cpu,
}


def rows_of(subject: Subject) -> str:
    """The header and a row for every run that counts, oldest first."""
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for record in sorted(subject.records, key=lambda record: record.started):
        if record.steps:
            totals = Totals.of(record.steps)
            writer.writerow([_cell(of(record, totals)) for of in COLUMNS.values()])
    return file.getvalue()


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.9g}"
    text = " ".join(str(value).split())
    # A spreadsheet takes what begins like this for a formula.
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text
