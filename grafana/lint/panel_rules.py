"""Rules for panels: how many, where, in which words, units and colours."""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from grafana.lint.reading import Json, annotations, panels, queries
from grafana.lint.rule import Finding, rule
from spikelab.signals import Colour, Unit

MOST_PANELS = 24
MOST_PANELS_ABOVE_FOLD = 12
# What a browser of 800 px height shows below Grafana's bars, and how much of a panel must show to
# count: its title and a line.
_SCREEN_PX, _BARS_PX, _ROW_PX, _SEEN_ROWS = 800, 96, 38, 2
_COLUMNS = 24
# Panels that Grafana 9.3, 12 and 13 all have. `graph`, `singlestat` and `table-old` are Angular,
# which is gone since 12; `trend` came after 9.3, and `xychart` has changed its options since.
_PANEL_TYPES = {
    "bargauge",
    "barchart",
    "gauge",
    "heatmap",
    "histogram",
    "stat",
    "state-timeline",
    "status-history",
    "table",
    "text",
    "timeseries",
}
WITHOUT_QUERY = {"text"}
# Colours that stand for none.
_NEUTRAL = {"transparent", "text"}


@rule("panel-count")
def _count(board: Json) -> Iterator[Finding]:
    """So many that a screen is read at a glance and a refresh stays light."""
    found = panels(board)
    if len(found) > MOST_PANELS:
        yield "dashboard", f"has {len(found)} panels, more than {MOST_PANELS}"
    last_row = (_SCREEN_PX - _BARS_PX) / _ROW_PX - _SEEN_ROWS
    above = [panel for panel in _on_the_page(board) if panel["gridPos"]["y"] <= last_row]
    if len(above) > MOST_PANELS_ABOVE_FOLD:
        yield "dashboard", f"has {len(above)} panels above the fold ({MOST_PANELS_ABOVE_FOLD})"


@rule("panel-id")
def _ids(board: Json) -> Iterator[Finding]:
    """Every panel has a number of its own: links and `viewPanel` use it."""
    numbers = Counter(panel.get("id") for panel in [*board["panels"], *_in_rows(board)])
    for number, times in numbers.items():
        if number is None or times > 1:
            yield "dashboard", f"{times} panels have the id {number}"


@rule("panel-grid")
def _grid(board: Json) -> Iterator[Finding]:
    """Panels lie within 24 columns and not on each other."""
    placed = _on_the_page(board)
    for panel in placed:
        at = panel["gridPos"]
        if at["x"] < 0 or at["x"] + at["w"] > _COLUMNS:
            yield _title(panel), "reaches over the edge of the grid"
    for one, other in combinations(placed, 2):
        if _overlap(one["gridPos"], other["gridPos"]):
            yield _title(one), f"lies on '{_title(other)}'"


@rule("panel-type")
def _type(board: Json) -> Iterator[Finding]:
    """Only kinds that every Grafana of ours has."""
    for panel in panels(board):
        if panel["type"] not in _PANEL_TYPES:
            yield _title(panel), f"Grafana 9.3 and 12 do not both have '{panel['type']}'"


@rule("panel-words")
def _words(board: Json) -> Iterator[Finding]:
    """A title of its own and a description for every panel, a title for every row."""
    titles = Counter(panel.get("title") for panel in panels(board))
    for panel in panels(board):
        if not panel.get("title"):
            yield f"panel {panel.get('id')}", "has no title"
        elif titles[panel["title"]] > 1:
            yield _title(panel), "is the title of more than one panel"
        if not panel.get("description"):
            yield _title(panel), "has no description"
    for row in board["panels"]:
        if row["type"] == "row" and not row.get("title"):
            yield f"row {row.get('id')}", "has no title"


@rule("panel-unit")
def _unit(board: Json) -> Iterator[Finding]:
    """A unit that the signals know: of the panel's field, its axis, or its columns."""
    known = {str(unit) for unit in Unit}
    for panel in _with_query(board):
        units = _units(panel)
        if not units:
            yield _title(panel), "has no unit"
        for unit in units - known:
            yield _title(panel), f"has the unit '{unit}', which no signal has"


@rule("panel-no-data")
def _no_data(board: Json) -> Iterator[Finding]:
    """Words for an empty panel, more than one: they say the cure."""
    for panel in _with_query(board):
        said = panel.get("fieldConfig", {}).get("defaults", {}).get("noValue") or ""
        if len(said.split()) < 3:
            yield _title(panel), "does not say what to do when it is empty"


@rule("panel-colour")
def _colour(board: Json) -> Iterator[Finding]:
    """Colours have a meaning, so there are no others, and none is left to Grafana."""
    agreed = {str(colour) for colour in Colour} | _NEUTRAL
    for panel in panels(board):
        for colour in _colours(panel) - agreed:
            yield _title(panel), f"has the colour '{colour}', which means nothing"
        if panel["type"] == "timeseries" and "palette-classic" in _colour_modes(panel):
            yield _title(panel), "leaves the colour of a series to Grafana"
    for annotation in annotations(board):
        if annotation.get("iconColor") not in agreed:
            yield f"annotation {annotation['name']}", f"has the colour {annotation['iconColor']}"


@rule("panel-query")
def _has_query(board: Json) -> Iterator[Finding]:
    """Every panel but a text has queries, each with a reference and words of its own."""
    for panel in panels(board):
        if panel["type"] in WITHOUT_QUERY:
            continue
        references = [target.get("refId") for target in panel.get("targets", [])]
        if not references:
            yield _title(panel), "has no query"
        if not all(references) or len(set(references)) != len(references):
            yield _title(panel), f"its queries are called {references}"
    for query in queries(board):
        if not query.text:
            yield query.place, f"query {query.ref_id} is empty"


def _title(panel: Json) -> str:
    return panel.get("title") or f"panel {panel.get('id')}"


def _in_rows(board: Json) -> list[Json]:
    return [inner for row in board["panels"] for inner in row.get("panels") or []]


def _on_the_page(board: Json) -> list[Json]:
    """What is shown before anything is opened: without the panels of collapsed rows."""
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def _overlap(one: Json, other: Json) -> bool:
    return bool(
        one["x"] < other["x"] + other["w"]
        and other["x"] < one["x"] + one["w"]
        and one["y"] < other["y"] + other["h"]
        and other["y"] < one["y"] + one["h"]
    )


def _with_query(board: Json) -> list[Json]:
    return [panel for panel in panels(board) if panel["type"] not in WITHOUT_QUERY]


def _units(panel: Json) -> set[str]:
    config = panel.get("fieldConfig", {})
    found = [config.get("defaults", {}).get("unit")]
    found += [p.get("value") for p in _properties(panel) if p["id"] == "unit"]
    found.append(panel.get("options", {}).get("yAxis", {}).get("unit"))
    return {unit for unit in found if unit}


def _properties(panel: Json) -> list[Json]:
    overrides = panel.get("fieldConfig", {}).get("overrides", [])
    return [p for override in overrides for p in override["properties"]]


def _colours(panel: Json) -> set[str]:
    """Every colour that is named anywhere in a panel's field configuration."""
    found: set[str] = set()
    for key, value in _pairs(panel.get("fieldConfig", {})):
        if key in {"fixedColor", "color"} and isinstance(value, str):
            found.add(value)
    return found


def _colour_modes(panel: Json) -> set[str]:
    """How the series of a panel get their colours; Grafana's palette where nothing is said.

    An override by name or by a pattern is taken to cover its query's series.
    """
    config = panel.get("fieldConfig", {})
    default = (config.get("defaults", {}).get("color") or {}).get("mode", "palette-classic")
    coloured = [
        override["matcher"]
        for override in config.get("overrides", [])
        if any(p["id"] == "color" for p in override["properties"])
    ]
    references = {target.get("refId") for target in panel.get("targets", [])}
    by_query = {m["options"] for m in coloured if m["id"] == "byFrameRefID"}
    by_name = any(matcher["id"] != "byFrameRefID" for matcher in coloured)
    return {"fixed"} if by_name or references <= by_query else {default}


def _pairs(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from _pairs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _pairs(inner)
