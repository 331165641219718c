"""The verdict of a run or of several, as a word and one sentence with its key figures."""

from collections import Counter
from collections.abc import Sequence

from spikelab.held_rates import held_rates
from spikelab.prediction.compare import predicted_rates
from spikelab.rate_table import held_sentence
from spikelab.record import RunRecord, Step
from spikelab.report import predictions, words
from spikelab.report.content import Word
from spikelab.report.curves import curves
from spikelab.report.missed import missed
from spikelab.report.raw import last_answer
from spikelab.report.subject import Subject
from spikelab.totals import Totals

_WORDS: dict[str, Word] = {"pass": "passed", "fail": "failed", "inconclusive": "inconclusive"}
_MOST_NAMED = 4


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
        f"{words.count(due)} requests were due, "
        f"{words.share(totals.success)} got a good answer, "
        f"p95 at worst {words.seconds(totals.latency.p95)}"
    )
    if set(verdicts) == {"pass"}:
        met = "met their objectives" if any(step.slo for step in record.steps) else "passed"
        return f"All {len(record.steps)} steps {met}: {figures}."
    failed = [step for step in record.steps if step.verdict != "pass"]
    named = [f"{step.name} ({_why(step)})" for step in failed[:_MOST_NAMED]]
    more = f" and {len(failed) - _MOST_NAMED} more" if len(failed) > _MOST_NAMED else ""
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
    good = step.requests - step.failures
    if step.start_spread_seconds is not None:
        parts = [f"{words.count(good)} of {words.count(step.requests)} users got a good answer"]
        last = last_answer([step])
        if last is not None:
            parts.append(f"the last of them came after {words.seconds(last)}")
        held, predicted = record.connections.established_peak, record.connections.predicted
        if held is not None and predicted is not None:
            parts.append(
                f"{words.count(held)} connections were established at most, "
                f"{words.count(predicted)} are what the settings can hold"
            )
    else:
        parts = [
            f"{words.rate(step.started_rate)}/s"
            + (f" of {words.rate(step.offered_rate)}/s offered" if step.offered_rate else ""),
            f"{words.share(words.success(step))} good answers",
            f"p95 {words.seconds(step.latency_seconds.p95)}",
        ]
    sentence = _capital(", ".join(parts)) + "."
    if step.verdict == "fail" and missed(step):
        sentence += f" Missed: {'; '.join(missed(step))}."
    if step.verdict == "inconclusive":
        sentence += f" {_capital(_undecided(step))}."
    return sentence + predictions.sentence([record])


def _counted(records: Sequence[RunRecord]) -> str:
    verdicts = Counter(_WORDS[record.verdict] for record in records)
    said = words.joined([f"{number} {word}" for word, number in verdicts.items()])
    worst: dict[str, list[str]] = {}
    for record in records:
        if record.verdict == "fail":
            for step in record.steps:
                worst.setdefault(words.cell_of(record, step), []).extend(missed(step))
    named = [f"{name} ({lines[0]})" for name, lines in worst.items() if lines][:_MOST_NAMED]
    sentence = f"Of {words.plural(len(records), 'run')} {said}"
    sentence += f": {'; '.join(named)}." if named else "."
    return sentence + predictions.sentence(records)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
