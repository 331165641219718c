"""What a dashboard's JSON holds: its panels, its queries, and the variables they use."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = Mapping[str, Any]

DASHBOARDS = Path(__file__).resolve().parent.parent / "dashboards"
# The pseudo data source of a panel whose targets name theirs.
MIXED = "-- Mixed --"

_VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)(?:\.[^:}]+)?(?::\w+)?\}|\[\[(\w+)(?::\w+)?\]\]")


@dataclass(frozen=True)
class Query:
    """One query of a dashboard: of a panel, of an annotation or of a variable.

    `model` is its object in the JSON, `panel` that of the panel it belongs to.
    """

    dashboard: str
    place: str
    ref_id: str
    source: str
    text: str
    model: Json = field(repr=False, compare=False)
    panel: Json | None = field(default=None, repr=False, compare=False)

    @property
    def is_promql(self) -> bool:
        return self.source == "prometheus"

    @property
    def is_variable(self) -> bool:
        """Whether it is a variable's: then it is a function of Grafana's, around a selector."""
        return self.place.startswith("variable ")

    def __str__(self) -> str:
        return f"{self.dashboard} / {self.place} / {self.ref_id}"


def load(path: Path) -> Json:
    """A dashboard's JSON."""
    board: Json = json.loads(path.read_text(encoding="utf-8"))
    return board


def all_dashboards() -> dict[str, Json]:
    """The committed dashboards by the name of their file, which is their uid."""
    return {path.stem: load(path) for path in sorted(DASHBOARDS.glob("*.json"))}


def panels(board: Json) -> list[Json]:
    """All panels, those of collapsed rows included, without the rows themselves."""
    found: list[Json] = []
    for panel in board.get("panels", []):
        if panel["type"] == "row":
            found += panel.get("panels", [])
        else:
            found.append(panel)
    return found


def queries(board: Json) -> list[Query]:
    """Every query of every panel, annotation and variable."""
    return [*panel_queries(board), *_annotation_queries(board), *_variable_queries(board)]


def panel_queries(board: Json) -> Iterator[Query]:
    """The targets of the panels."""
    for panel in panels(board):
        for target in panel.get("targets", []):
            yield Query(
                dashboard=board["uid"],
                place=panel.get("title", ""),
                ref_id=target.get("refId", ""),
                source=_source(target) or _source(panel),
                text=target.get("expr") or target.get("query") or "",
                model=target,
                panel=panel,
            )


def _annotation_queries(board: Json) -> Iterator[Query]:
    for annotation in annotations(board):
        target = annotation.get("target") or annotation
        yield Query(
            dashboard=board["uid"],
            place=f"annotation {annotation['name']}",
            ref_id=target.get("refId", "Anno"),
            source=_source(annotation),
            text=target.get("expr") or target.get("query") or "",
            model=annotation,
        )


def annotations(board: Json) -> list[Json]:
    """The annotations with a query; Grafana's own has none."""
    found: list[Json] = board.get("annotations", {}).get("list", [])
    return [annotation for annotation in found if not annotation.get("builtIn")]


def _variable_queries(board: Json) -> Iterator[Query]:
    for variable in variables(board):
        if variable["type"] != "query":
            continue
        asked = variable["query"]
        yield Query(
            dashboard=board["uid"],
            place=f"variable {variable['name']}",
            ref_id=asked.get("refId", "") if isinstance(asked, dict) else variable["name"],
            source=_source(variable),
            text=asked["query"] if isinstance(asked, dict) else asked,
            model=variable,
        )


def variables(board: Json) -> list[Json]:
    """The declared variables."""
    found: list[Json] = board.get("templating", {}).get("list", [])
    return found


def used_variables(text: str) -> set[str]:
    """Names that a text uses as `$name`, `${name}`, `${name:format}` or `[[name]]`."""
    return {next(filter(None, match.groups())) for match in _VARIABLE.finditer(text)}


def _source(holder: Json) -> str:
    reference = holder.get("datasource") or {}
    return reference if isinstance(reference, str) else reference.get("uid") or ""
