"""Reports: a run, a sweep, a capacity search or a comparison as one HTML page (report/page),
Markdown, CSV or JUnit XML. They read the results folder alone, never a store.

Markdown is short enough for the summary of a CI job. CSV has the form that Apache Otava's importer
reads (docs/report.md): Otava converts every column that it is told to read as a metric, so a run
that is no result has no row, and what was not measured is empty. JUnit XML has a test case for each
objective of each step: a missed one is a failure; a step that decided nothing, or a run that was
not made, is skipped, as it is no fault of the service; a run that is no result is an error, unless
another one of its cell is a result.
"""

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from spikelab.report.content import Content, content
from spikelab.report.sentences import SIGNS
from spikelab.report.steps import ObjectiveCheck, checks, name_of_step, undecided
from spikelab.report.tables import Table
from spikelab.results.files import write_whole
from spikelab.results.lookup import Subject, find
from spikelab.results.run import RunRecord, Step, Totals

FILE = "report.html"
# Format to file name, where none is given.
FORMATS = {"html": FILE, "md": "report.md", "csv": "report.csv", "junit": "report.xml"}


def write_report(name: str) -> Path:
    """Makes the HTML report of a run or an experiment by its name: results/<name>/report.html.

    Raises UsageError when there is no such run, OSError when it cannot be written.
    """
    subject = find(name)
    path = subject.folder / FILE
    write_whole(path, rendered(subject, "html"))
    return path


def rendered(subject: Subject, format_name: str) -> str:
    """A report in one of `FORMATS`."""
    return _WRITERS[format_name](subject)


_MOST_ROWS = 60
_SPECIAL = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "\\`*_[]|~"},
        "<": "&lt;",
        ">": "&gt;",
        "&": "&amp;",
        "\n": " ",
        "\r": " ",
    }
)


def markdown(subject: Subject) -> str:
    """Verdict, key figures, settings that differ, and what to beware of."""
    report = content(subject)
    lines = [
        f"## {report.kind} {_safe(report.title)}",
        "",
        f"**{SIGNS[report.word][1]} {report.word.capitalize()}.** {_safe(report.sentence)}",
        "",
        *(f"- {name}: {_safe(text)}" for name, text in report.about),
    ]
    settings = [table for table in report.settings if table.columns and table.rows]
    for table in [*report.key, *settings]:
        lines += ["", f"### {table.title}", "", *_table(table)]
    if report.limits:
        lines += ["", "### Limits", "", *(f"- {_safe(line)}" for line in report.limits)]
    return "\n".join(lines) + "\n"


def _table(table: Table) -> list[str]:
    rows = [list(row) for row in table.rows]
    columns = list(table.columns) or [""] * len(rows[0])
    places = ["---:" if place in table.numbers else "---" for place in range(len(columns))]
    lines = [_row([_safe(name) for name in columns]), _row(places)]
    lines += [_row([_safe(cell) for cell in row]) for row in rows[:_MOST_ROWS]]
    if len(rows) > _MOST_ROWS:
        lines += ["", f"The first {_MOST_ROWS} of {len(rows):,} rows."]
    if table.note:
        lines += ["", _safe(table.note)]
    return lines


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _safe(text: str) -> str:
    """Texts of records as words: no markup, no table cell of their own."""
    return text.translate(_SPECIAL)


Cell = str | int | float | None
_Column = Callable[[RunRecord, Totals], Cell]


def _latency(name: str) -> _Column:
    return lambda record, totals: getattr(totals.latency_seconds, name)


def _mean(of: Callable[[Step], float | None]) -> _Column:
    def value(record: RunRecord, totals: Totals) -> Cell:
        """Of the steps' means, weighted by their good answers."""
        known = [(step.good, of(step)) for step in record.steps]
        weight = sum(number for number, figure in known if figure is not None)
        total = sum(number * figure for number, figure in known if figure is not None)
        return total / weight if weight else None

    return value


def _added(of: Callable[[Step], float | None]) -> _Column:
    """Only of one step: rates of several do not add up."""
    return lambda record, totals: of(record.steps[0]) if len(record.steps) == 1 else None


def _lateness(record: RunRecord) -> float | None:
    """Of the driver at p99, at its worst step."""
    return max((step.lateness.p99 for step in record.steps if step.lateness), default=None)


COLUMNS: dict[str, _Column] = {
    "time": lambda record, totals: record.started.isoformat(timespec="seconds"),
    "run": lambda record, totals: record.testid,
    "experiment": lambda record, totals: record.experiment,
    "plan": lambda record, totals: record.plan,
    "driver": lambda record, totals: record.driver,
    "variant": lambda record, totals: record.variant,
    "repeat": lambda record, totals: record.steps[0].repeat,
    "values": lambda record, totals: _listed(record.values),
    "labels": lambda record, totals: _listed(record.labels),
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
    # New ones come last: rows are added to files that have a header.
    "completed_rate": _added(lambda step: step.completed_rate),
    "latency_basis": lambda record, totals: record.latency_basis,
    "lateness_p99_seconds": lambda record, totals: _lateness(record),
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


def _listed(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.9g}"
    text = " ".join(str(value).split())
    # A spreadsheet takes what begins like this for a formula.
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text


# XML 1.0 has no way to write these.
_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(subject: Subject) -> str:
    """One suite, with its cases named by what the step was run with."""
    suite = TestSuite(_junit_safe(subject.name))
    for name, value in {"plan": subject.plan, "kind": subject.kind}.items():
        suite.add_property(name, _junit_safe(value))
    if subject.records or subject.spoiled:
        suite.timestamp = (subject.records or subject.spoiled)[0].started.isoformat()
    # All at once: for each call the suite counts all of its cases anew.
    suite.add_testcases([*_decided(subject), *_open(subject)])
    xml = JUnitXml("spikelab")
    xml.add_testsuite(suite)
    return bytes(xml.tostring()).decode()  # type: ignore[no-untyped-call]


def _decided(subject: Subject) -> Iterator[TestCase]:
    if subject.kind in ("comparison", "capacity"):
        yield _answer(content(subject))
        return
    for record in subject.records:
        for step in record.steps:
            yield from _step(record, step)


def _step(record: RunRecord, step: Step) -> Iterator[TestCase]:
    seconds = step.seconds
    name = name_of_step(record, step) + (f" #{step.repeat}" if step.repeat > 1 else "")
    for check in checks(step) or [ObjectiveCheck("no objective", "met", "")]:
        case = TestCase(
            _junit_safe(f"{name}: {check.name}"), _junit_safe(record.plan), round(seconds, 3)
        )
        if step.verdict == "inconclusive":
            case.result = [Skipped(_junit_safe(undecided(step)))]
        elif check.result == "missed":
            case.result = [Failure(_junit_safe(check.seen), "missed")]
        yield case


def _answer(report: Content) -> TestCase:
    """Of a comparison or a search the answer itself, which is better than the sum of its runs."""
    case = TestCase(_junit_safe(report.title), report.kind)
    meaning, text = SIGNS[report.word][0], _junit_safe(report.sentence)
    if meaning == "bad":
        case.result = [Failure(text, report.word)]
    elif meaning == "open":
        case.result = [Skipped(text)]
    else:
        case.system_out = text
    return case


def _open(subject: Subject) -> Iterator[TestCase]:
    """What was tried without a result, or not at all. What an attempt left open and the next one
    closed is no error, and a comparison's answer is there without."""
    if subject.state is None:
        yield from map(_spoiled, () if subject.comparison else subject.spoiled)
        return
    spoiled = {record.testid: record for record in subject.spoiled}
    for cell in subject.state.cells:
        if cell.done:
            continue
        tried = [spoiled[name] for name in cell.attempts if name in spoiled]
        yield from map(_spoiled, tried)
        if not tried:
            name = cell.name
            case = TestCase(_junit_safe(name), _junit_safe(subject.plan))
            case.result = [Skipped("not run")]
            yield case


def _spoiled(record: RunRecord) -> TestCase:
    case = TestCase(_junit_safe(record.testid), _junit_safe(record.plan))
    case.result = [Error(_junit_safe("; ".join(record.reasons) or "it did not end"), "invalid")]
    return case


def _junit_safe(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", text)


def _html(subject: Subject) -> str:
    # Matplotlib, behind its figures, takes a while to load and may be missing.
    from spikelab.report.page import html  # noqa: PLC0415

    return html(subject)


_WRITERS: dict[str, Callable[[Subject], str]] = {
    "html": _html,
    "md": markdown,
    "csv": rows_of,
    "junit": junit,
}
