"""Rules for a dashboard as a whole, its variables and its annotations."""

import re
from collections.abc import Iterator

from grafana.lint.reading import Json, annotations, queries, used_variables, variables
from grafana.lint.rule import Finding, rule

# Grafana 9.3 knows 37; what the generator writes, 9.3 loads without a migration of its own.
_SCHEMA_VERSIONS = range(36, 42)
# What Grafana itself puts in.
OWN_VARIABLES = re.compile(r"^(__\w+|timeFilter|interval|\d+)$")
_MARKED = ("Phases", "Settings")


@rule("dashboard-head")
def _head(board: Json) -> Iterator[Finding]:
    """A stable uid that links can be made of, a title, a description, a fit schema version."""
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", board.get("uid") or ""):
        yield "dashboard", "the uid is to be words in lower case with hyphens"
    for key in ("title", "description"):
        if not board.get(key):
            yield "dashboard", f"has no {key}"
    if board.get("schemaVersion") not in _SCHEMA_VERSIONS:
        yield "dashboard", f"schema version {board.get('schemaVersion')} is not one 9.3 loads"
    if board.get("id") is not None:
        yield "dashboard", "has a database id, which belongs to one Grafana"


@rule("dashboard-shared")
def _shared(board: Json) -> Iterator[Finding]:
    """One crosshair, and links that keep variables and time."""
    if board.get("graphTooltip") not in {1, 2}:
        yield "dashboard", "does not share its crosshair"
    links = board.get("links", [])
    if not any(link.get("includeVars") and link.get("keepTime") for link in links):
        yield "dashboard", "has no link that keeps variables and time"


@rule("variable-used")
def _variable_used(board: Json) -> Iterator[Finding]:
    """A choice that changes nothing misleads."""
    for variable in variables(board):
        others = [other for other in variables(board) if other is not variable]
        texts = [board["panels"], board.get("annotations", {}), board.get("links", []), others]
        if variable["name"] not in used_variables(repr(texts)):
            yield f"variable {variable['name']}", "is used by nothing"


@rule("variable-declared")
def _variable_declared(board: Json) -> Iterator[Finding]:
    """A name that is not declared stays in the query as it is written."""
    declared = {variable["name"] for variable in variables(board)}
    for query in queries(board):
        for name in used_variables(query.text) - declared:
            if not OWN_VARIABLES.match(name):
                yield query.place, f"query {query.ref_id} uses the undeclared ${name}"


@rule("variable-words")
def _variable_words(board: Json) -> Iterator[Finding]:
    """A label, a description, a first choice, and choices that follow the time shown."""
    for variable in variables(board):
        place = f"variable {variable['name']}"
        if variable.get("hide", 0) == 2:
            continue
        for key in ("label", "description", "current"):
            if not variable.get(key):
                yield place, f"has no {key}"
        if variable["type"] == "query" and variable.get("refresh") != 2:
            yield place, "is not read again when the time shown changes"


@rule("annotations")
def _annotations(board: Json) -> Iterator[Finding]:
    """Phases and changes of settings are marked on every dashboard."""
    names = {annotation["name"] for annotation in annotations(board) if annotation.get("enable")}
    for name in sorted({*_MARKED} - names):
        yield "dashboard", f"does not mark '{name}'"
