"""The verdict of a run, a sweep, a search or a comparison: a word, and a sentence with its key
figures."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from spikelab.experiments.sweep import HeldRates, held_rates
from spikelab.objectives import Verdict
from spikelab.prediction.check import (
    as_predicted,
    checks,
    in_short,
    predicted_capacity,
    predicted_rates,
    rate_text,
)
from spikelab.report.run_tables import last_answer
from spikelab.report.steps import curves, missed, name_of_step, undecided
from spikelab.report.tables import Meaning
from spikelab.results.comparison import ComparisonRecord
from spikelab.results.experiment import CapacityAnswer
from spikelab.results.lookup import Subject
from spikelab.results.run import RunRecord, Step, Totals
from spikelab.units import plural, show_count, show_rate, show_seconds, show_success

Word = Literal[
    "passed",
    "failed",
    "inconclusive",
    "invalid",
    "better",
    "worse",
    "equivalent",
    "found",
    "no verdict",
]
# What a verdict's word means for the reader, and the sign beside it.
SIGNS: dict[Word, tuple[Meaning, str]] = {
    "passed": ("good", "✓"),
    "better": ("good", "✓"),
    "equivalent": ("good", "="),
    "found": ("good", "✓"),
    "failed": ("bad", "✗"),
    "worse": ("bad", "✗"),
    "invalid": ("bad", "!"),
    "inconclusive": ("open", "?"),
    "no verdict": ("open", "–"),
}
VERDICT_WORDS: dict[str, Word] = {
    "pass": "passed",
    "fail": "failed",
    "inconclusive": "inconclusive",
}
_WORST_FIRST: tuple[Verdict, ...] = ("fail", "inconclusive", "pass")
_MOST_NAMED = 4


def of_run(subject: Subject) -> tuple[Word, str]:
    """Of one run."""
    if not subject.records:
        (record,) = subject.spoiled
        why = "; ".join(record.reasons) or "it did not end"
        state = "It is not over" if record.ended is None else "It decides nothing"
        return "invalid", f"{state}: {why}."
    (record,) = subject.records
    return VERDICT_WORDS[record.verdict], _run_sentence(record)


def of_runs(subject: Subject) -> tuple[Word, str]:
    """Of a sweep or of several runs of one plan."""
    if not subject.records:
        return "no verdict", "No run of it is done."
    verdicts = {record.verdict for record in subject.records}
    word = VERDICT_WORDS[next(each for each in _WORST_FIRST if each in verdicts)]
    found = curves(subject.records)
    if found and found.several_rates:
        predicted = predicted_rates(subject.records)
        sentences = [
            f"{name or 'It'} {held_sentence(held_rates(rates), predicted.get(name))}"
            for name, rates in found.rates.items()
        ]
        return word, ". ".join(map(_capital, sentences)) + "."
    return word, _counted(subject.records)


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
        f"p95 at worst {show_seconds(totals.latency_seconds.p95)}"
    )
    if set(verdicts) == {"pass"}:
        met = "met their objectives" if any(step.slo for step in record.steps) else "passed"
        return f"All {len(record.steps)} steps {met}: {figures}."
    failed = [step for step in record.steps if step.verdict != "pass"]
    named = [f"{step.name} ({_why(step)})" for step in failed[:_MOST_NAMED]]
    left = len(failed) - _MOST_NAMED
    more = f" and {left} more" if left > 0 else ""
    return (
        f"{len(failed)} of {len(record.steps)} steps did not pass: {'; '.join(named)}{more}. "
        f"In all {figures}."
    )


def _why(step: Step) -> str:
    if step.verdict == "inconclusive":
        return undecided(step)
    return ", ".join(missed(step)) or "failed"


def _step_sentence(record: RunRecord, step: Step) -> str:
    if step.start_spread_seconds is not None:
        parts = [f"{show_count(step.good)} of {show_count(step.requests)} users got a good answer"]
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
        sentence += f" {_capital(undecided(step))}."
    return sentence + _prediction([record])


def _counted(records: Sequence[RunRecord]) -> str:
    verdicts = Counter(VERDICT_WORDS[record.verdict] for record in records)
    counts = joined([f"{number} {word}" for word, number in verdicts.items()])
    worst: dict[str, list[str]] = {}
    for record in records:
        if record.verdict == "fail":
            for step in record.steps:
                worst.setdefault(name_of_step(record, step), []).extend(missed(step))
    named = [f"{name} ({lines[0]})" for name, lines in worst.items() if lines][:_MOST_NAMED]
    sentence = f"Of {plural(len(records), 'run')} {counts}"
    sentence += f": {'; '.join(named)}." if named else "."
    return sentence + _prediction(records)


def of_comparison(record: ComparisonRecord) -> tuple[Word, str]:
    """Of B against A."""
    word: Word = record.verdict or "no verdict"
    return word, f"{_capital(record.summary.removeprefix(f'{word}: ')).rstrip('.')}."


def of_search(answer: CapacityAnswer, records: Sequence[RunRecord]) -> tuple[Word, str]:
    """Of a capacity search, with what was predicted of its runs."""
    sentence = search_sentence(answer, records)
    if answer.overload:
        sentence += f". Overloaded: {answer.overload}"
    return "found" if answer.outcome == "found" else "inconclusive", f"{_capital(sentence)}."


def search_sentence(answer: CapacityAnswer, records: Sequence[RunRecord]) -> str:
    """The answer, and the rate that is predicted of its runs."""
    return "; ".join([str(answer), *_predicted_capacity(answer, records)])


def _predicted_capacity(answer: CapacityAnswer, records: Sequence[RunRecord]) -> list[str]:
    return predicted_capacity(answer.parameter, answer.highest_pass, answer.lowest_fail, records)


def held_sentence(answer: HeldRates, predicted: float | None = None) -> str:
    """What a variant holds, and is predicted to: ``holds 600/s; fails at 850/s``."""
    highest, lowest = answer.highest_passing_rate, answer.lowest_failing_rate
    parts = [
        "holds no tested rate" if highest is None else f"holds {highest:,}/s",
        "no tested rate failed" if lowest is None else f"fails at {lowest:,}/s",
    ]
    for name, rates in (
        ("inconclusive", answer.inconclusive),
        ("not reached", answer.not_reached),
    ):
        if rates:
            parts.append(f"{name} at {', '.join(f'{rate:,}/s' for rate in rates)}")
    if predicted is not None:
        parts.append(rate_text(predicted, highest, lowest))
    return "; ".join(parts)


def _prediction(records: Sequence[RunRecord]) -> str:
    """Whether runs came as predicted; empty without a prediction, or where nothing of it was
    measured."""
    if len(records) == 1:
        said, _, figures = in_short(records[0]).partition(": ")
        if said == "yes":
            return f" It came as predicted: {figures}."
        return f" Not as predicted: {figures}." if said == "no" else ""
    spikes = [record for record in records if record.prediction and checks(record)]
    return f" {as_predicted(spikes)}." if spikes else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def joined(words: Sequence[str]) -> str:
    """``a, b and c``"""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""
