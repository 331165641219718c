"""The words and tables of a report, from what it is about."""

# - What a result was made with and what it cannot say: method, machine, limits.
# - The verdict of a run or of several, as a word and one sentence with its key figures.
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from spikelab.comparison.pairing import show_place
from spikelab.experiments.sweep import held_rates
from spikelab.prediction.check import predicted_rates
from spikelab.report import tables, words
from spikelab.report.tables import Content, ReportTable, Word, held_sentence, last_answer, settings
from spikelab.report.words import curves, missed
from spikelab.results.lookup import Subject, SubjectKind
from spikelab.results.run import Host, RunRecord, Step, Totals
from spikelab.units import plural, show_count, show_rate, show_seconds, show_success

if TYPE_CHECKING:
    from spikelab.results.comparison import ComparisonRecord


_KINDS: dict[SubjectKind, str] = {
    "run": "Run",
    "runs": "Runs",
    "sweep": "Sweep",
    "capacity": "Capacity search",
    "comparison": "Comparison",
}


def content(subject: Subject) -> Content:
    """Everything but the figures."""
    word, sentence, key = _said(subject)
    records = subject.records or subject.spoiled
    return Content(
        title=subject.name,
        kind=_KINDS[subject.kind],
        word=word,
        sentence=sentence,
        about=_about(subject),
        key=key,
        settings=settings(records),
        method=method(subject),
        machine=machine(records),
        limits=limits(subject),
        raw=tables.raw(records),
        warnings=warnings(subject.records),
    )


def _said(subject: Subject) -> tuple[Word, str, list[ReportTable]]:
    if subject.comparison:
        return tables.said(subject.comparison)
    if answer := tables.capacity_of(subject):
        return tables.said_searched(answer, subject.records)
    records = subject.records
    if subject.kind == "run":
        return *of_run(subject), [t for r in records for t in tables.run_key(r)]
    key = tables.rates_key(records) or tables.cells_key(records)
    told = tables.of_runs(records, tables.MOST_ROWS)
    return *of_runs(subject), [table for table in (key, told) if table]


def _about(subject: Subject) -> list[tuple[str, str]]:
    records = subject.records or subject.spoiled
    said = [("plan", subject.plan)]
    labels = dict(subject.state.labels if subject.state else records[0].labels if records else {})
    if labels:
        said.append(("labels", words.listed(labels)))
    if records:
        begun = min(record.started for record in records)
        ended = [record.ended for record in records if record.ended]
        said.append(("time", _times(begun, max(ended) if ended else None)))
    if len(records) > 1:
        said.append(("runs", show_count(len(records))))
    if subject.slo:
        said.append(("objectives", "; ".join(subject.slo)))
    return said


def _times(begun: datetime, ended: datetime | None) -> str:
    first = f"{begun:%Y-%m-%d %H:%M:%S}"
    if ended is None:
        return f"since {first} UTC"
    same_day = begun.date() == ended.date()
    return f"{first} to {ended:{'%H:%M:%S' if same_day else '%Y-%m-%d %H:%M:%S'}} UTC"


_SEARCH = (
    "The rate grows until a step fails, the gap is halved until it is narrow enough, and both ends "
    "are tried again. A step passes or fails when a binomial bound on its shares of failed and of "
    "late requests says so, else it is inconclusive."
)
_MOST_LINES = 30
_MOST_NAMED = 3


def method(subject: Subject) -> list[str]:
    """How it was run and judged, in sentences."""
    said = [_how_run(subject), _how_driven(subject.records or subject.spoiled)]
    if subject.comparison:
        return [*said, *_how_compared(subject.comparison, subject.spoiled)]
    if subject.kind == "capacity":
        said.append(_SEARCH)
    if subject.slo:
        said.append(
            f"Objectives: {'; '.join(subject.slo)}. A failed or dropped request counts as "
            "infinitely late. A step that started less than 98 % of its offered rate, or left a "
            "queue longer than its latency limit, fails; one whose driver was short of CPU is "
            "inconclusive."
        )
    else:
        said.append(
            "No objective was given: a step passes when it started 98 % of its offered rate, in a "
            "closed loop always; one whose driver was short of CPU is inconclusive."
        )
    if subject.kind in ("sweep", "runs") and len(subject.records) > 1:
        said.append(
            "A rate is held when every repeat passes, failed when every repeat fails, and "
            "inconclusive when repeats disagree; every tested rate below a held one is held too. "
            "The unit of replication is the run, not the request."
        )
    return said


def _how_compared(record: "ComparisonRecord", spoiled: Sequence[RunRecord]) -> list[str]:
    no_result = {each.testid for each in spoiled}
    a, b = (
        plural(sum(run not in no_result for run in side.runs), "run")
        for side in (record.a, record.b)
    )
    taken = {
        True: "A's and B's runs were taken in turn, so that what drifts meets both.",
        False: "A's and B's runs were not taken in turn: what drifted is in the ratio.",
        None: "Whether A's and B's runs were taken in turn is not known.",
    }
    return [
        f"A is {record.a.name} ({a}), B is {record.b.name} ({b}). {taken[record.interleaved]}",
        "The unit of replication is the run. Of each pair the ratio B / A is taken; the interval "
        "is Student's on their logarithms at 95 %. Equivalent: the whole interval is within the "
        f"margin of {record.margin * 100:.3g} %. Better or worse: it leaves 1 out. The primary "
        f"metric, {record.primary}, decides; the others share another 5 % by Holm's correction.",
    ]


def _how_run(subject: Subject) -> str:
    state, number = subject.state, len(subject.records)
    if subject.comparison:
        return f"Runs of the plan {subject.plan}, compared in pairs."
    if state is None:
        return f"One run of the plan {subject.plan}."
    repeats = max((cell.repeat for cell in state.cells), default=1)
    order = {"abba": "turned round in every repeat (ABBA)", "blocks": "shuffled in every repeat"}
    said = f"{plural(number, 'run')} of the plan {subject.plan}"
    said += f", up to {repeats} repeats" if repeats > 1 else ""
    if subject.kind == "capacity":
        return f"{plural(number, 'run')} of the plan {subject.plan}, one a step."
    if number > 1 and state.order in (*order, "as-written"):
        said += f"; their order was {order.get(state.order, 'as written')}"
        said += f" (seed {state.seed})" if state.seed is not None else ""
    return said + "."


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
    return (
        f"Driven by {words.joined(list(drivers))}; connections were {words.joined(list(policies))}."
    )


def machine(records: Sequence[RunRecord]) -> ReportTable:
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
            add(f"{name}", version)
    if not rows:
        add("machine", "not known: imported reports do not say it")
    return ReportTable(
        "Machine", ("", ""), [(name, "; ".join(found)) for name, found in rows.items()]
    )


def _add_host(add: Callable[[str, object], None], host: Host) -> None:
    add("kernel", host.kernel)
    add("processors", host.cpus)
    for name, value in host.limits.items():
        add(name, f"{value:,}" if isinstance(value, int) else value)


def _compared_limits(record: "ComparisonRecord") -> list[str]:
    said = list(record.notes)
    if record.interleaved is False:
        said.append(
            "The runs were not taken in turn: a drift of the machine may be the difference."
        )
    for each in record.left_out:
        where = " ".join(filter(None, [show_place(each.place), f"pair {each.repeat}"]))
        said.append(f"Left out: {where}: {each.reason}")
    said += [f"{each.metric}: {each.reason}" for each in record.results if each.reason]
    if record.verdict is None:
        said.append(
            "Set side by side only: one run a side shows no spread, so there is no verdict."
        )
    return said


def limits(subject: Subject) -> list[str]:
    """What this result cannot say."""
    records = subject.records
    said: list[str] = []
    said += [f"{r.testid} is no result: {'; '.join(r.reasons)}" for r in subject.spoiled]
    said += _unfinished(subject)
    if subject.comparison:
        said += _compared_limits(subject.comparison)
    said += warnings(records)
    limited = [record for record in records if record.generator.limited]
    if limited:
        said.append(
            f"The driver was short of CPU in {plural(len(limited), 'run')}: what they "
            "measured may be the driver."
        )
    if subject.kind in ("sweep", "runs") and len(records) > 1:
        repeats: dict[str, int] = {}
        for record in records:
            cell = f"{record.variant} {show_place(record.values)}"
            repeats[cell] = repeats.get(cell, 0) + 1
        if min(repeats.values()) == 1:
            said.append("Some of it was run once: a single run shows no spread.")
    if subject.kind == "run" and records:
        said.append("It is one run: another one may differ; repeats show by how much.")
    kernels = {record.host.kernel for record in records}
    if "" in kernels:
        said.append("Imported reports do not say which machine and settings they were made with.")
    elif len({(record.host.kernel, record.host.cpus) for record in records}) > 1:
        said.append("The runs were made on machines that differ.")
    said.append("It holds for this machine, these settings and this load.")
    if len(said) > _MOST_LINES:
        said = [*said[:_MOST_LINES], f"… and {len(said) - _MOST_LINES} lines more in the records."]
    return list(dict.fromkeys(said))


def _unfinished(subject: Subject) -> list[str]:
    state = subject.state
    if state is None:
        return []
    missing = sum(not cell.done for cell in state.cells)
    said = []
    if state.state != "finished":
        why = f": {state.reason}" if state.reason else ""
        said.append(f"It is not finished ({state.state}{why}).")
    if missing:
        said.append(f"{missing} of {plural(len(state.cells), 'run')} are not done.")
    return said


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


_WORDS: dict[str, Word] = {"pass": "passed", "fail": "failed", "inconclusive": "inconclusive"}
_VERDICT_MOST_NAMED = 4


def of_run(subject: Subject) -> tuple[Word, str]:
    """Of one run."""
    if not subject.records:
        (record,) = subject.spoiled
        going = record.ended is None
        why = "; ".join(record.reasons) or "it did not end"
        return "invalid", f"{'It is not over' if going else 'It decides nothing'}: {why}."
    (record,) = subject.records
    return _WORDS[record.verdict], _run_sentence(record)


def of_runs(subject: Subject) -> tuple[Word, str]:
    """Of a sweep or of several runs of one plan."""
    if not subject.records:
        return "no verdict", "No run of it is done."
    word = _word([record.verdict for record in subject.records])
    found = curves(subject.records)
    if found and found.several_rates:
        predicted = predicted_rates(subject.records)
        said = [
            f"{name or 'It'} {held_sentence(held_rates(rates), predicted.get(name))}"
            for name, rates in found.rates.items()
        ]
        return word, ". ".join(map(_capital, said)) + "."
    return word, _counted(subject.records)


def _word(verdicts: Sequence[str]) -> Word:
    for verdict in ("fail", "inconclusive"):
        if verdict in verdicts:
            return _WORDS[verdict]
    return "passed"


def _run_sentence(record: RunRecord) -> str:
    if not record.steps:
        return "It has no judged step."
    if len(record.steps) == 1:
        return _step_sentence(record, record.steps[0])
    verdicts = Counter(step.verdict for step in record.steps)
    totals = Totals.of(record.steps)
    due = totals.requests + totals.dropped
    figures = (
        f"{show_count(due)} requests were due, "
        f"{show_success(totals.success)} got a good answer, "
        f"p95 at worst {show_seconds(totals.latency.p95)}"
    )
    if set(verdicts) == {"pass"}:
        met = "met their objectives" if any(step.slo for step in record.steps) else "passed"
        return f"All {len(record.steps)} steps {met}: {figures}."
    failed = [step for step in record.steps if step.verdict != "pass"]
    named = [f"{step.name} ({_why(step)})" for step in failed[:_VERDICT_MOST_NAMED]]
    more = (
        f" and {len(failed) - _VERDICT_MOST_NAMED} more"
        if len(failed) > _VERDICT_MOST_NAMED
        else ""
    )
    return (
        f"{len(failed)} of {len(record.steps)} steps did not pass: {'; '.join(named)}{more}. "
        f"In all {figures}."
    )


def _why(step: Step) -> str:
    if step.verdict == "inconclusive":
        return _undecided(step)
    return ", ".join(missed(step)) or "failed"


def _undecided(step: Step) -> str:
    if step.generator.limited:
        return "the driver was short of CPU"
    return "inconclusive"


def _step_sentence(record: RunRecord, step: Step) -> str:
    good = step.good
    if step.start_spread_seconds is not None:
        parts = [f"{show_count(good)} of {show_count(step.requests)} users got a good answer"]
        last = last_answer([step])
        if last is not None:
            parts.append(f"the last of them came after {show_seconds(last)}")
        held, predicted = record.connections.established_peak, record.connections.predicted
        if held is not None and predicted is not None:
            parts.append(
                f"{show_count(held)} connections were established at most, "
                f"{show_count(predicted)} are what the settings can hold"
            )
    else:
        parts = [
            f"{show_rate(step.started_rate)}/s"
            + (f" of {show_rate(step.offered_rate)}/s offered" if step.offered_rate else ""),
            f"{show_success(step.success)} good answers",
            f"p95 {show_seconds(step.latency_seconds.p95)}",
        ]
    sentence = _capital(", ".join(parts)) + "."
    if step.verdict == "fail" and missed(step):
        sentence += f" Missed: {'; '.join(missed(step))}."
    if step.verdict == "inconclusive":
        sentence += f" {_capital(_undecided(step))}."
    return sentence + tables.sentence([record])


def _counted(records: Sequence[RunRecord]) -> str:
    verdicts = Counter(_WORDS[record.verdict] for record in records)
    said = words.joined([f"{number} {word}" for word, number in verdicts.items()])
    worst: dict[str, list[str]] = {}
    for record in records:
        if record.verdict == "fail":
            for step in record.steps:
                worst.setdefault(words.cell_of(record, step), []).extend(missed(step))
    named = [f"{name} ({lines[0]})" for name, lines in worst.items() if lines][:_VERDICT_MOST_NAMED]
    sentence = f"Of {plural(len(records), 'run')} {said}"
    sentence += f": {'; '.join(named)}." if named else "."
    return sentence + tables.sentence(records)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
