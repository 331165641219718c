"""A capacity search's answer as words and a table."""

from collections.abc import Iterable

from pydantic import ValidationError

from spikelab.experiments.capacity_answer import CapacityAnswer, OverloadAnswer
from spikelab.prediction.compare import predicted_capacity
from spikelab.record import RunRecord
from spikelab.report import words
from spikelab.report.content import Table, Word
from spikelab.report.subject import Subject

_WORDS: dict[str, Word] = {"found": "found"}


def capacity_of(subject: Subject) -> CapacityAnswer | None:
    """The answer so far; None where it is no search or has none yet."""
    if subject.kind != "capacity" or not subject.state or not subject.state.answer:
        return None
    try:
        return CapacityAnswer.model_validate(subject.state.answer)
    except ValidationError:
        return None


def searching(subject: Subject, answer: CapacityAnswer) -> tuple[RunRecord, ...]:
    """The runs of the search itself, without the overload after it."""
    steps = {step.testid for step in answer.steps}
    return tuple(record for record in subject.records if record.testid in steps)


def said(answer: CapacityAnswer, records: Iterable[RunRecord]) -> tuple[Word, str, list[Table]]:
    """Verdict, sentence, and the steps."""
    sentence = "; ".join([str(answer), *predicted_capacity(answer.parameter, records)])
    if answer.overload:
        sentence += f". Overloaded: {answer.overload}"
    tables = [_steps(answer)]
    if answer.overload:
        tables.append(_overload(answer.overload))
    return (
        _WORDS.get(answer.outcome, "inconclusive"),
        f"{sentence[:1].upper()}{sentence[1:]}.",
        tables,
    )


def _steps(answer: CapacityAnswer) -> Table:
    columns = (
        "step",
        "offered/s" if answer.parameter == "rate" else answer.parameter,
        "started/s",
        "achieved/s",
        "success",
        "p95",
        "p99",
        "verdict",
        "why",
    )
    rows = [
        (
            str(number),
            f"{step.value:,.6g}",
            words.rate(step.started_rate),
            words.rate(step.achieved_rate),
            words.share(step.success),
            words.seconds(step.latency_seconds.p95),
            words.seconds(step.latency_seconds.p99),
            step.verdict,
            step.why,
        )
        for number, step in enumerate(answer.steps, 1)
    ]
    return Table("Steps", columns, rows, frozenset(range(7)))


def _overload(found: OverloadAnswer) -> Table:
    back = "not seen" if found.recovery_seconds is None else f"{found.recovery_seconds:.0f} s"
    rows = [
        ("outcome", found.outcome),
        ("offered", f"{words.rate(found.rate)}/s, {found.factor:g} times the capacity"),
        ("good within the SLO", f"{words.rate(found.goodput)}/s"),
        ("refused at once", words.share(found.refused_share)),
        ("timed out or dropped", words.share(found.timed_out_share)),
        ("p95", words.seconds(found.latency_seconds.p95)),
        (f"recovered at {words.rate(found.recovery_rate)}/s after", back),
    ]
    return Table("Overload", ("", ""), rows)
