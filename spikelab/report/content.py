"""What a report holds, the same in every format: the verdict, tables, how it was measured and what
it cannot say. Figures are the page's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError

from spikelab.comparison.pairing import show_place
from spikelab.comparison.verdict import called
from spikelab.report import experiment_tables, run_tables, sentences
from spikelab.report.sentences import Word, joined
from spikelab.report.steps import curves
from spikelab.report.tables import Table
from spikelab.report.target_tables import target_tables
from spikelab.results.comparison import ComparisonRecord
from spikelab.results.experiment import CapacityAnswer
from spikelab.results.lookup import Subject, SubjectKind
from spikelab.results.run import Host, RunRecord
from spikelab.units import plural, show_count, show_percent

_KINDS: dict[SubjectKind, str] = {
    "run": "Run",
    "runs": "Runs",
    "sweep": "Sweep",
    "capacity": "Capacity search",
    "comparison": "Comparison",
}
_SEARCH = (
    "The rate grows until a step fails, the gap is halved until it is narrow enough, and both ends "
    "are tried again. A step passes or fails when a binomial bound on its shares of failed and of "
    "late requests says so, else it is inconclusive."
)
_MOST_LINES = 30
_MOST_NAMED = 3


@dataclass(frozen=True)
class Content:
    """A whole report but its figures. Lists of words are paragraphs or items of a list."""

    title: str
    kind: str
    word: Word
    sentence: str
    about: Sequence[tuple[str, str]]
    key: Sequence[Table]
    settings: Sequence[Table]
    method: Sequence[str]
    machine: Table
    limits: Sequence[str]
    raw: Table


def content(subject: Subject) -> Content:
    """Everything but the figures."""
    word, sentence, key = _verdict(subject)
    records = subject.records or subject.spoiled
    return Content(
        title=subject.name,
        kind=_KINDS[subject.kind],
        word=word,
        sentence=sentence,
        about=_about(subject),
        key=key,
        settings=target_tables(records),
        method=method(subject),
        machine=machine(records),
        limits=limits(subject),
        raw=run_tables.raw(records),
    )


def _verdict(subject: Subject) -> tuple[Word, str, list[Table]]:
    """The word, the sentence behind it, and the tables of key figures."""
    records = subject.records
    if subject.comparison:
        return *sentences.of_comparison(subject.comparison), _compared(subject.comparison)
    if answer := capacity_of(subject):
        return *sentences.of_search(answer, records), experiment_tables.search_in_order(answer)
    if subject.kind == "run":
        tables = [table for record in records for table in run_tables.one_run(record)]
        return *sentences.of_run(subject), tables
    several = (runs_table(records), run_tables.predictions(records))
    return *sentences.of_runs(subject), [table for table in several if table]


def _compared(record: ComparisonRecord) -> list[Table]:
    a, b = called(record.a, record.b), called(record.b, record.a)
    more = (experiment_tables.advice(record), experiment_tables.noise(record))
    return [experiment_tables.metrics(record, a, b), *(table for table in more if table)]


def runs_table(records: Sequence[RunRecord]) -> Table | None:
    """Several runs in one table: by rate where they are repeats of rates, else a row each."""
    if found := curves(records):
        return experiment_tables.rates(found, "achieved/s", "success", "p95")
    return run_tables.separate_runs(records)


def capacity_of(subject: Subject) -> CapacityAnswer | None:
    """The answer so far; None where it is no search or has none yet."""
    if subject.kind != "capacity" or not subject.state or not subject.state.answer:
        return None
    try:
        return CapacityAnswer.model_validate(subject.state.answer)
    except ValidationError:
        return None


def _about(subject: Subject) -> list[tuple[str, str]]:
    records = subject.records or subject.spoiled
    lines = [("plan", subject.plan)]
    labels = dict(subject.state.labels if subject.state else records[0].labels if records else {})
    if labels:
        lines.append(("labels", ", ".join(f"{name}={value}" for name, value in labels.items())))
    if records:
        begun = min(record.started for record in records)
        ended = [record.ended for record in records if record.ended]
        lines.append(("time", _times(begun, max(ended) if ended else None)))
    if len(records) > 1:
        lines.append(("runs", show_count(len(records))))
    if subject.slo:
        lines.append(("objectives", "; ".join(subject.slo)))
    return lines


def _times(begun: datetime, ended: datetime | None) -> str:
    first = f"{begun:%Y-%m-%d %H:%M:%S}"
    if ended is None:
        return f"since {first} UTC"
    same_day = begun.date() == ended.date()
    return f"{first} to {ended:{'%H:%M:%S' if same_day else '%Y-%m-%d %H:%M:%S'}} UTC"


def method(subject: Subject) -> list[str]:
    """How it was run and judged, in sentences."""
    lines = [_how_run(subject), _how_driven(subject.records or subject.spoiled)]
    if subject.comparison:
        return [*lines, *_how_compared(subject.comparison, subject.spoiled)]
    if subject.kind == "capacity":
        lines.append(_SEARCH)
    if subject.slo:
        lines.append(
            f"Objectives: {'; '.join(subject.slo)}. A failed or dropped request counts as "
            "infinitely late. A step that started less than 98 % of its offered rate, or left a "
            "queue longer than its latency limit, fails; one whose driver was late or short of "
            "CPU, or that had too few requests, is inconclusive."
        )
    else:
        lines.append(
            "No objective was given: a step passes when it started 98 % of its offered rate, in a "
            "closed loop always; one whose driver was short of CPU is inconclusive."
        )
    if subject.kind in ("sweep", "runs") and len(subject.records) > 1:
        lines.append(
            "A rate is held when every repeat passes, failed when every repeat fails, and "
            "inconclusive when repeats disagree; every tested rate below a held one is held too. "
            "The unit of replication is the run, not the request."
        )
    return lines


def _how_compared(record: ComparisonRecord, spoiled: Sequence[RunRecord]) -> list[str]:
    no_result = {each.testid for each in spoiled}
    a, b = (
        plural(sum(run not in no_result for run in side.runs), "run")
        for side in (record.a, record.b)
    )
    taken = {
        True: "A's and B's runs were taken in turn, so that what drifts meets both.",
        False: "A's and B's runs were not taken in turn: what drifted is in the ratio.",
        None: "The lab does not know whether A's and B's runs were taken in turn.",
    }
    sides = f"A is {record.a.name} ({a}), B is {record.b.name} ({b}). {taken[record.interleaved]}"
    if record.verdict is None:
        return [sides, "Figures are geometric means over the runs, set side by side."]
    lines = [
        sides,
        "The unit of replication is the run. Of each pair the ratio B / A is taken; the interval "
        f"is Student's on their logarithms at {show_percent(record.confidence_level)}. Equivalent: "
        f"the whole interval is within the margin of {show_percent(record.margin)}. Better or "
        f"worse: it leaves 1 out. The primary metric, {record.primary}, decides; the others share "
        f"another {show_percent(1 - record.confidence_level)} by Holm's correction.",
    ]
    if record.looks:
        after = joined([str(pairs) for pairs in record.looks])
        lines.append(f"A verdict was looked for after {after} pairs, and the first one counts.")
    return lines


def _how_run(subject: Subject) -> str:
    state, number = subject.state, len(subject.records)
    if subject.comparison:
        return f"Runs of the plan {subject.plan}, compared in pairs."
    if state is None:
        return f"One run of the plan {subject.plan}."
    repeats = max((cell.repeat for cell in state.cells), default=1)
    order = {"abba": "turned round in every repeat (ABBA)", "blocks": "shuffled in every repeat"}
    sentence = f"{plural(number, 'run')} of the plan {subject.plan}"
    sentence += f", up to {repeats} repeats" if repeats > 1 else ""
    if subject.kind == "capacity":
        return f"{plural(number, 'run')} of the plan {subject.plan}, one a step."
    if number > 1 and state.order in (*order, "as-written"):
        sentence += f"; their order was {order.get(state.order, 'as written')}"
        sentence += f" (seed {state.seed})" if state.seed is not None else ""
    return sentence + "."


def _how_driven(records: Sequence[RunRecord]) -> str:
    drivers = dict.fromkeys(
        f"{name} {version}".strip()
        for record in records
        for name, version in (record.generator.versions or {record.driver: ""}).items()
    )
    policies = dict.fromkeys(
        "kept alive" if record.connections.policy == "keep-alive" else "closed after each answer"
        for record in records
    )
    return f"Driven by {joined(list(drivers))}; connections were {joined(list(policies))}."


def machine(records: Sequence[RunRecord]) -> Table:
    """Host facts, the target and the versions; several values where runs differ."""
    rows: dict[str, dict[str, None]] = {}

    def add(name: str, value: object) -> None:
        if value not in (None, "", 0):
            rows.setdefault(name, {})[str(value)] = None

    for record in records:
        _add_host(add, record.host)
        add("target", record.target.url)
        add("target's runtime", record.target.runtime)
        add("target's image", record.target.image)
        add("target's build", record.target.build)
        for name, version in record.generator.versions.items():
            add(name, version)
    if not rows:
        add("machine", "not known: imported reports do not say it")
    return Table("Machine", ("", ""), [(name, "; ".join(found)) for name, found in rows.items()])


def _add_host(add: Callable[[str, object], None], host: Host) -> None:
    add("kernel", host.kernel)
    add("processors", host.cpus)
    for name, value in host.limits.items():
        add(name, f"{value:,}" if isinstance(value, int) else value)


def limits(subject: Subject) -> list[str]:
    """What this result cannot say."""
    records = subject.records
    lines: list[str] = []
    lines += [f"{r.testid} is no result: {'; '.join(r.reasons)}" for r in subject.spoiled]
    lines += _unfinished(subject)
    if subject.comparison:
        lines += _limits_of_comparison(subject.comparison)
    lines += warnings(records)
    limited = [record for record in records if record.generator.limited]
    if limited:
        lines.append(
            f"The driver was short of CPU in {plural(len(limited), 'run')}: what they "
            "measured may be the driver."
        )
    if subject.kind in ("sweep", "runs") and len(records) > 1:
        repeats: dict[str, int] = {}
        for record in records:
            cell = f"{record.variant} {show_place(record.values)}"
            repeats[cell] = repeats.get(cell, 0) + 1
        if min(repeats.values()) == 1:
            lines.append("Some of it was run once: a single run shows no spread.")
    if subject.kind == "run" and records:
        lines.append("It is one run: another one may differ; repeats show by how much.")
    kernels = {record.host.kernel for record in records}
    if "" in kernels:
        lines.append("Imported reports do not say which machine and settings they were made with.")
    elif len({(record.host.kernel, record.host.cpus) for record in records}) > 1:
        lines.append("The runs were made on machines that differ.")
    lines.append("It holds for this machine, these settings and this load.")
    if len(lines) > _MOST_LINES:
        lines = [
            *lines[:_MOST_LINES],
            f"… and {len(lines) - _MOST_LINES} lines more in the records.",
        ]
    return list(dict.fromkeys(lines))


def _limits_of_comparison(record: ComparisonRecord) -> list[str]:
    lines = list(record.notes)
    for each in record.left_out:
        where = " ".join(filter(None, [show_place(each.place), f"pair {each.repeat}"]))
        lines.append(f"Left out: {where}: {each.reason}")
    lines += [f"{each.metric}: {each.reason}" for each in record.results if each.reason]
    return lines


def _unfinished(subject: Subject) -> list[str]:
    state = subject.state
    if state is None:
        return []
    missing = sum(not cell.done for cell in state.cells)
    lines = []
    if state.state != "finished":
        why = f": {state.reason}" if state.reason else ""
        lines.append(f"It is not finished ({state.state}{why}).")
    if missing:
        lines.append(f"{missing} of {plural(len(state.cells), 'run')} are not done.")
    return lines


def warnings(records: Sequence[RunRecord]) -> list[str]:
    """The records' own, each once, with the runs that it is about."""
    about: dict[str, list[str]] = {}
    for record in records:
        for text in record.warnings:
            about.setdefault(text, []).append(record.testid)
    if len(records) == 1:
        return list(about)
    return [f"{text} ({_runs(names, len(records))})" for text, names in about.items()]


def _runs(names: Sequence[str], of: int) -> str:
    if len(names) == of:
        return "all runs"
    if len(names) > _MOST_NAMED:
        return f"{len(names)} of {of} runs"
    return ", ".join(names)
