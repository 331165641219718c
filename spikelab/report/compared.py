"""A comparison as words and tables. It needs SciPy, so it is imported when there is one."""

from spikelab.comparison.model import ComparisonRecord, Noise, Result
from spikelab.comparison.places import show
from spikelab.comparison.sentences import called, figure, label
from spikelab.report import words
from spikelab.report.content import Table, Word


def said(record: ComparisonRecord) -> tuple[Word, str, list[Table]]:
    """Verdict, sentence, and a row a metric."""
    word: Word = record.verdict or "no verdict"
    sentence = record.summary.removeprefix(f"{word}: ")
    tables = [_metrics(record)]
    advice = _advice(record)
    if advice:
        tables.append(advice)
    if record.noise:
        tables.append(_noise(record.noise, record.margin))
    return word, f"{sentence[:1].upper()}{sentence[1:].rstrip('.')}.", tables


def _metrics(record: ComparisonRecord) -> Table:
    a, b = called(record.a, record.b), called(record.b, record.a)
    columns = ("metric", a, b, "B / A", "95 % interval", "pairs", "verdict")
    rows = [
        (
            _named(result),
            figure(result.a, result.unit),
            figure(result.b, result.unit),
            words.NONE if result.ratio is None else f"×{result.ratio:.3f}",
            words.NONE if result.low is None else f"{result.low:.3f} to {result.high:.3f}",
            str(len(result.pairs)),
            result.verdict or words.NONE,
        )
        for result in record.results
    ]
    note = (
        f"A is {record.a.name}, B is {record.b.name}. Figures are geometric means over the pairs."
    )
    return Table("Metrics", columns, rows, frozenset({1, 2, 3, 4, 5}), note)


def _named(result: Result) -> str:
    name = " ".join(filter(None, [label(result.metric), show(result.place)]))
    return f"{name} (primary)" if result.primary else name


def _advice(record: ComparisonRecord) -> Table | None:
    rows = [
        (
            _named(result),
            words.count(result.advice.pairs_needed) if result.advice.pairs_needed else "over 1,000",
            words.count(result.advice.more_pairs),
            f"{(result.advice.smallest_difference - 1) * 100:.3g} %",
        )
        for result in record.results
        if result.advice
    ]
    columns = ("metric", "pairs needed", "more than there are", "smallest difference seen")
    return (
        Table("What more pairs would bring", columns, rows, frozenset({1, 2, 3})) if rows else None
    )


def _noise(noise: list[Noise], margin: float) -> Table:
    rows = [
        (
            label(each.metric),
            str(each.pairs),
            words.NONE
            if each.smallest_difference is None
            else f"{(each.smallest_difference - 1) * 100:.3g} %",
            words.NONE if each.pairs_needed is None else words.count(each.pairs_needed),
            each.reason or "",
        )
        for each in noise
    ]
    columns = ("metric", "pairs", "smallest difference", f"pairs for {margin * 100:.3g} %", "")
    return Table(
        "This machine's own noise, from identical arms", columns, rows, frozenset({1, 2, 3})
    )
