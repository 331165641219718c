"""A comparison on the console."""

from rich.table import Table
from rich.text import Text

from spikelab.comparison.model import ComparisonRecord, Noise, Result
from spikelab.comparison.places import show
from spikelab.comparison.sentences import figure, label
from spikelab.console import out

_COLOURS = {"better": "green", "worse": "red", "equivalent": "green", "inconclusive": "yellow"}
_RIGHT = ("A", "B", "B / A", "95 % interval", "pairs")


def show_comparison(record: ComparisonRecord) -> None:
    """A row a metric and place, the primary one first; then what it means, in a line."""
    out.print(f"A  {record.a.name}\nB  {record.b.name}")
    places = any(result.place for result in record.results)
    judged = record.deciding is not None
    table = Table(box=None, pad_edge=False)
    names = [*(["at"] if places else []), "metric", "A", "B", "B / A"]
    names += ["95 % interval", "pairs", "verdict"] if judged else []
    for name in names:
        table.add_column(name, justify="right" if name in _RIGHT else "left")
    for result in record.results:
        cells = [*([show(result.place)] if places else []), *_cells(result)]
        table.add_row(*cells[: len(names)], *([_verdict(result)] if judged else []))
    out.print(table)
    for result in record.results:
        if result.reason:
            about = " ".join(filter(None, [label(result.metric), show(result.place)]))
            out.print(f"why        {about}: {result.reason}")
    for each in record.left_out:
        where = " ".join(filter(None, [show(each.place), f"#{each.repeat}"]))
        out.print(f"left out   {where}: {each.reason}")
    for note in record.notes:
        out.print(f"note       {note}")
    if record.noise:
        out.print(_noise(record.noise, record.margin))
    out.print(record.summary)


def _cells(result: Result) -> list[str]:
    name = label(result.metric) + (" (primary)" if result.primary else "")
    ratio = "" if result.ratio is None else f"{result.ratio:.3f}"
    interval = ""
    if result.low is not None and result.high is not None:
        interval = f"{result.low:.3f} to {result.high:.3f}"
    a, b = (figure(value, result.unit) for value in (result.a, result.b))
    return [name, a, b, ratio, interval, str(len(result.pairs))]


def _verdict(result: Result) -> Text:
    verdict = result.verdict or ""
    return Text(verdict, style=_COLOURS.get(verdict, "default"))


def _noise(noise: list[Noise], margin: float) -> Table:
    table = Table(box=None, pad_edge=False)
    needed = f"pairs for a margin of {margin * 100:.3g} %"
    for name in ("metric", "noise of a pair", "smallest difference seen", needed):
        table.add_column(name, justify="left" if name == "metric" else "right")
    for each in noise:
        if each.log_deviation is None or each.smallest_difference is None:
            table.add_row(label(each.metric), each.reason or "", "", "")
            continue
        table.add_row(
            label(each.metric),
            f"{each.log_deviation:.2%}",
            f"{each.smallest_difference - 1:.2%}",
            "over 1,000" if each.pairs_needed is None else str(each.pairs_needed),
        )
    return table
