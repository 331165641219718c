"""The tables that people read: one model, printed on the console and written into reports.

A cell is text in its final form; what a verdict's word means gives it its colour on the console
and on a page.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from rich.table import Table as RichTable
from rich.text import Text

from spikelab.console import out
from spikelab.units import MISSING

# Good, bad, undecided, and what is written only by the way.
Meaning = Literal["good", "bad", "open", "aside"]
_COLOURS: dict[Meaning, str] = {"good": "green", "bad": "red", "open": "yellow", "aside": "dim"}
_WORDS: dict[str, Meaning] = {
    **dict.fromkeys(("pass", "held", "better", "equivalent"), "good"),
    **dict.fromkeys(("fail", "failed", "invalid", "worse"), "bad"),
    **dict.fromkeys(("inconclusive", "not reached"), "open"),
}
_ABSENT = ("", "0", MISSING)
Row = TypeVar("Row")


class Marked(str):
    """A cell with a meaning that its words do not tell."""

    meaning: Meaning

    def __new__(cls, text: str, meaning: Meaning) -> "Marked":
        cell = super().__new__(cls, text)
        cell.meaning = meaning
        return cell


def meaning_of(cell: str) -> Meaning | None:
    """Of a marked cell, or of a verdict, which may have its reason behind it in brackets."""
    return cell.meaning if isinstance(cell, Marked) else _WORDS.get(cell.partition(" (")[0])


@dataclass(frozen=True)
class Table:
    """`numbers`: columns that are written to the right. `note`: a sentence under it in reports.
    Without `columns` it has no head."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: frozenset[int] = frozenset()
    note: str = ""


@dataclass(frozen=True)
class Column(Generic[Row]):
    """`of` writes a row's cell. One that is `optional` is left out where no row has anything."""

    name: str
    of: Callable[[Row], str]
    number: bool = False
    optional: bool = False


def text(name: str, of: Callable[[Any], str]) -> Column[Any]:
    """A column of words."""
    return Column(name, of)


def number(name: str, of: Callable[[Any], str]) -> Column[Any]:
    """A column of figures."""
    return Column(name, of, number=True)


def table(
    title: str,
    columns: Sequence[Column[Row]],
    rows: Iterable[Row],
    note: str = "",
    most: int | None = None,
) -> Table:
    """A row of cells for each of `rows`, of which `most` are shown."""
    items = list(rows)
    cells = [[column.of(item) for item in items] for column in columns]
    shown = [
        (column, own)
        for column, own in zip(columns, cells, strict=True)
        if not column.optional or any(cell not in _ABSENT for cell in own)
    ]
    return Table(
        title,
        [column.name for column, _ in shown],
        list(zip(*(own[:most] for _, own in shown), strict=True)),
        frozenset(place for place, (column, _) in enumerate(shown) if column.number),
        note,
    )


def print_table(it: Table) -> None:
    """On the console, which says title and note in lines of its own."""
    shown = RichTable(box=None, pad_edge=False, show_header=bool(it.columns))
    for place, name in enumerate(it.columns or [""] * len(it.rows[0])):
        shown.add_column(name, justify="right" if place in it.numbers else "left", overflow="fold")
    for first, *others in it.rows:
        shown.add_row(first, *map(_coloured, others))
    out.print(shown)


def _coloured(cell: str) -> Text:
    """The verdict, or whatever is marked, but not the reason behind it."""
    meaning = meaning_of(cell)
    if meaning is None:
        return Text(cell)
    word, bracket, reason = (cell, "", "") if isinstance(cell, Marked) else cell.partition(" (")
    return Text(word, style=_COLOURS[meaning]).append(bracket + reason, style="default")
