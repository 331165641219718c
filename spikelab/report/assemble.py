"""The words and tables of a report, from what it is about."""

from datetime import datetime

from spikelab.report import background, predictions, raw, searched, verdict, words
from spikelab.report.content import Content, Table, Word
from spikelab.report.settings import settings
from spikelab.report.subject import Kind, Subject

_KINDS: dict[Kind, str] = {
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
        method=background.method(subject),
        machine=background.machine(records),
        limits=background.limits(subject),
        raw=raw.raw(records),
        warnings=background.warnings(subject.records),
    )


def _said(subject: Subject) -> tuple[Word, str, list[Table]]:
    if subject.comparison:
        # SciPy comes with it.
        from spikelab.report import compared  # noqa: PLC0415

        return compared.said(subject.comparison)
    if answer := searched.capacity_of(subject):
        return searched.said(answer, subject.records)
    records = subject.records
    if subject.kind == "run":
        return *verdict.of_run(subject), [t for r in records for t in raw.run_key(r)]
    key = raw.rates_key(records) or raw.cells_key(records)
    told = predictions.of_runs(records, raw.MOST_ROWS)
    return *verdict.of_runs(subject), [table for table in (key, told) if table]


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
        said.append(("runs", words.count(len(records))))
    if subject.slo:
        said.append(("objectives", "; ".join(subject.slo)))
    return said


def _times(begun: datetime, ended: datetime | None) -> str:
    first = f"{begun:%Y-%m-%d %H:%M:%S}"
    if ended is None:
        return f"since {first} UTC"
    same_day = begun.date() == ended.date()
    return f"{first} to {ended:{'%H:%M:%S' if same_day else '%Y-%m-%d %H:%M:%S'}} UTC"
