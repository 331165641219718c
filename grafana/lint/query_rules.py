"""Rules for queries: where they ask, and how much."""

import re
from collections.abc import Iterator

import yaml

from grafana.lint import promql
from grafana.lint.board_rules import OWN_VARIABLES
from grafana.lint.reading import (
    DASHBOARDS,
    MIXED,
    Json,
    Query,
    panel_queries,
    panels,
    queries,
    used_variables,
)
from grafana.lint.rule import Finding, rule

_ROLLING = {"rate", "irate", "increase", "delta", "idelta"}
_COUNTED = {"rate", "irate", "increase", "resets", "changes"}
# Not every _count is one: system_cpu_count is a gauge.
_COUNTER = re.compile(r"_(total|bucket|(seconds|bytes)_(count|sum))$")
_PUSHED = re.compile(r"^(k6_|locust_|lab_|loadtest:)")
_GRAFANA_WINDOWS = {"$__interval", "$__rate_interval", "$__range"}
_LONGEST_WINDOW_SECONDS = 600


@rule("datasource")
def _datasource(board: Json) -> Iterator[Finding]:
    """A provisioned data source, by its fixed uid and with its type."""
    known = provisioned_data_sources()
    for panel in panels(board):
        if not panel.get("targets"):
            continue
        reference = panel.get("datasource") or {}
        if reference.get("uid") not in {*known, MIXED}:
            yield panel["title"], f"reads the unknown data source {reference.get('uid')}"
    for query in queries(board):
        holder = query.model.get("datasource") or (query.panel or {}).get("datasource") or {}
        if holder.get("type") != known.get(query.source, ""):
            yield query.place, f"query {query.ref_id} reads {query.source} as {holder.get('type')}"


@rule("promql")
def _promql(board: Json) -> Iterator[Finding]:
    """Every expression parses."""
    for query in _promql_queries(board):
        try:
            promql.selectors(query.text)
        except ValueError as error:
            yield query.place, f"query {query.ref_id} is no PromQL: {error}"


@rule("rate-interval")
def _rate_interval(board: Json) -> Iterator[Finding]:
    """A rate is over `$__rate_interval`: a fixed window is empty or blurred at some zoom."""
    for query, selector in _selectors(board):
        if selector.function in _ROLLING and selector.window != "$__rate_interval":
            yield (
                query.place,
                f"query {query.ref_id}: {selector.function}({selector.metric}[{selector.window}])",
            )


@rule("no-rate-of-pushed")
def _no_rate_of_pushed(board: Json) -> Iterator[Finding]:
    """rate() of what a driver pushes misses its first push; the loadtest:… series do not."""
    for query, selector in _selectors(board):
        if _PUSHED.match(selector.metric) and _ROLLING.intersection(selector.functions):
            yield query.place, f"query {query.ref_id}: rate of the pushed {selector.metric}"


@rule("counter-rate")
def _counter_rate(board: Json) -> Iterator[Finding]:
    """A scraped counter is shown as a rate or an increase, not as the height it has reached."""
    for query, selector in _selectors(board):
        scraped = _COUNTER.search(selector.metric) and not _PUSHED.match(selector.metric)
        if scraped and not _COUNTED.intersection(selector.functions):
            yield query.place, f"query {query.ref_id}: the counter {selector.metric} is no rate"


@rule("bounded")
def _bounded(board: Json) -> Iterator[Finding]:
    """Every query asks for a run or a target, or within bounds; no window is longer than needed."""
    for query, selector in _selectors(board):
        if not _chooses(selector.matchers):
            yield query.place, f"query {query.ref_id}: {selector.metric or 'a selector'} of all"
        if selector.window and not _short(selector.window):
            yield query.place, f"query {query.ref_id}: the window [{selector.window}] is long"
    for query in queries(board):
        if query.source == "influxdb" and not _bounded_influxql(query.text):
            yield query.place, f"query {query.ref_id} has neither a time nor a run"


@rule("influxql-match")
def _influxql_match(board: Json) -> Iterator[Finding]:
    """A variable in InfluxQL is matched whole, with a format that says how All is written."""
    for query in queries(board):
        if query.source != "influxdb":
            continue
        for name in used_variables(query.text):
            if OWN_VARIABLES.match(name):
                continue
            if not re.search(rf"[=!]~ /\^\(?\$\{{{name}:(raw|regex|pipe)\}}\)?\$/", query.text):
                yield query.place, f"query {query.ref_id}: ${name} is not matched as /^${{…}}$/"


@rule("legend")
def _legend(board: Json) -> Iterator[Finding]:
    """A series over time has a legend of ours."""
    for query in panel_queries(board):
        assert query.panel is not None
        if query.panel["type"] != "timeseries":
            continue
        if not (query.model.get("legendFormat") or query.model.get("alias")):
            yield query.place, f"query {query.ref_id} has no legend"


def provisioned_data_sources() -> dict[str, str]:
    """Type by uid, as grafana/provisioning declares them."""
    folder = DASHBOARDS.parent / "provisioning" / "datasources"
    return {
        source["uid"]: source["type"]
        for file in folder.glob("*.y*ml")
        for source in yaml.safe_load(file.read_text(encoding="utf-8"))["datasources"]
    }


def _promql_queries(board: Json) -> list[Query]:
    """Expressions of panels and annotations; a variable's query is a function of Grafana's."""
    found = [query for query in queries(board) if query.is_promql and query.text]
    return [query for query in found if not query.is_variable]


def _selectors(board: Json) -> Iterator[tuple[Query, promql.Selector]]:
    for query in _promql_queries(board):
        try:
            found = promql.selectors(query.text)
        except ValueError:
            continue  # the rule "promql" says it
        for selector in found:
            yield query, selector


def _chooses(matchers: tuple[tuple[str, str, str], ...]) -> bool:
    """Whether a selector names a run, a target, or one of the lab's own jobs."""
    for label, operator, value in matchers:
        if label in {"testid", "target"} and "$" in value:
            return True
        if label == "job" and operator == "MatchOp.Equal":
            return True
    return False


def _short(window: str) -> bool:
    return window in _GRAFANA_WINDOWS or float(window[:-1]) <= _LONGEST_WINDOW_SECONDS


def _bounded_influxql(text: str) -> bool:
    return bool(
        "$timeFilter" in text
        or re.search(r"\btime\s*[<>]", text)
        or re.search(r'"?testid"? =~ /\^\(?\$\{\w+:', text)
    )
