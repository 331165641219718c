"""The report as Markdown, short enough for the summary of a CI job."""

from collections.abc import Sequence

from spikelab.report.assemble import content
from spikelab.report.content import SIGNS, Table
from spikelab.report.subject import Subject

_MOST_ROWS = 60
_SPECIAL = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "\\`*_[]|~"},
        "<": "&lt;",
        ">": "&gt;",
        "&": "&amp;",
        "\n": " ",
        "\r": " ",
    }
)


def markdown(subject: Subject) -> str:
    """Verdict, key figures, settings that differ, and what to beware of."""
    said = content(subject)
    lines = [
        f"## {said.kind} {_safe(said.title)}",
        "",
        f"**{SIGNS[said.word][1]} {said.word.capitalize()}.** {_safe(said.sentence)}",
        "",
        *(f"- {name}: {_safe(text)}" for name, text in said.about),
    ]
    settings = [table for table in said.settings if table.columns and table.rows]
    for table in [*said.key, *settings]:
        lines += ["", f"### {table.title}", "", *_table(table)]
    if said.limits:
        lines += ["", "### Limits", "", *(f"- {_safe(line)}" for line in said.limits)]
    return "\n".join(lines) + "\n"


def _table(table: Table) -> list[str]:
    rows = [list(row) for row in table.rows]
    columns = list(table.columns) or [""] * len(rows[0])
    places = ["---:" if place in table.numbers else "---" for place in range(len(columns))]
    lines = [_row([_safe(name) for name in columns]), _row(places)]
    lines += [_row([_safe(cell) for cell in row]) for row in rows[:_MOST_ROWS]]
    if len(rows) > _MOST_ROWS:
        lines += ["", f"The first {_MOST_ROWS} of {len(rows):,} rows."]
    if table.note:
        lines += ["", _safe(table.note)]
    return lines


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _safe(text: str) -> str:
    """Texts of records as words: no markup, no table cell of their own."""
    return text.translate(_SPECIAL)
