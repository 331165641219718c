"""What a report says, the same in every format: verdict, tables, words. Figures are the page's."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

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
# What a word means for the reader: it chooses the colour and the sign beside it.
SIGNS: dict[Word, tuple[str, str]] = {
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


@dataclass(frozen=True)
class Table:
    """`numbers`: columns that are written to the right. `note`: a sentence under it."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: frozenset[int] = frozenset()
    note: str = ""


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
    warnings: Sequence[str] = field(default_factory=tuple)
