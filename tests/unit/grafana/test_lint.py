"""The dashboards keep the rules, and each rule finds what breaks it."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from grafana.lint.exceptions import EXCUSES, Excuse
from grafana.lint.reading import all_dashboards, used_variables
from grafana.lint.rules import RULES, judge, lint
from spikelab.signals import Colour

Board = dict[str, Any]


RATE = 'sum(rate(http_requests_total{target=~"$target"}[$__rate_interval]))'


def panel(number: int, x: int = 0, y: int = 0) -> Board:
    """A panel that keeps every rule."""
    return {
        "id": number,
        "type": "timeseries",
        "title": f"How many, {number}?",
        "description": "More is worse.",
        "datasource": {"type": "prometheus", "uid": "prometheus"},
        "gridPos": {"x": x, "y": y, "w": 6, "h": 4},
        "fieldConfig": {
            "defaults": {"unit": "reqps", "noValue": "No run: start one"},
            "overrides": [
                {
                    "matcher": {"id": "byFrameRefID", "options": "A"},
                    "properties": [
                        {"id": "color", "value": {"mode": "fixed", "fixedColor": Colour.GOOD}}
                    ],
                }
            ],
        },
        "targets": [
            {
                "refId": "A",
                "datasource": {"type": "prometheus", "uid": "prometheus"},
                "expr": RATE,
                "legendFormat": "requests",
                "range": True,
            }
        ],
    }


def board() -> Board:
    """A dashboard that keeps every rule."""
    phases = 'SELECT "title" FROM "events" WHERE $timeFilter AND "testid" =~ /^${testid:raw}$/'
    changes = 'changes(tomcat_setting{target=~"$target"}[5m])'
    return {
        "uid": "good",
        "title": "Good?",
        "description": "It is.",
        "schemaVersion": 41,
        "graphTooltip": 1,
        "links": [{"includeVars": True, "keepTime": True}],
        "templating": {"list": [variable("testid"), variable("target")]},
        "annotations": {
            "list": [
                {"builtIn": 1, "name": "Annotations & Alerts"},
                {
                    "name": "Phases",
                    "enable": True,
                    "iconColor": Colour.WORKING,
                    "datasource": {"type": "influxdb", "uid": "influxdb"},
                    "query": phases,
                },
                {
                    "name": "Settings",
                    "enable": True,
                    "iconColor": Colour.LIMIT,
                    "datasource": {"type": "prometheus", "uid": "prometheus"},
                    "expr": changes,
                },
            ]
        },
        "panels": [panel(1), panel(2, x=6)],
    }


def variable(name: str) -> Board:
    return {
        "name": name,
        "type": "query",
        "label": name,
        "description": "A choice.",
        "datasource": {"type": "prometheus", "uid": "prometheus"},
        "query": {"query": f"label_values(up, {name})", "refId": f"variable-{name}"},
        "refresh": 2,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def first(broken: Board) -> Board:
    found: Board = broken["panels"][0]
    return found


def expression(text: str) -> Callable[[Board], None]:
    def change(broken: Board) -> None:
        first(broken)["targets"][0]["expr"] = text

    return change


def influxql(text: str) -> Callable[[Board], None]:
    def change(broken: Board) -> None:
        source = {"type": "influxdb", "uid": "influxdb"}
        target = {"refId": "A", "datasource": source, "query": text, "alias": "x"}
        first(broken).update(datasource=source, targets=[target])

    return change


def with_panels(count: int, height: int) -> Callable[[Board], None]:
    def change(broken: Board) -> None:
        broken["panels"] = [
            panel(n + 1, x=n % 4 * 6, y=n // 4 * height) | {"gridPos": at(n, height)}
            for n in range(count)
        ]

    def at(n: int, height: int) -> Board:
        return {"x": n % 4 * 6, "y": n // 4 * height, "w": 6, "h": height}

    return change


def field(key: str, value: Any) -> Callable[[Board], None]:
    def change(broken: Board) -> None:
        first(broken)["fieldConfig"]["defaults"][key] = value

    return change


def of_panel(key: str, value: Any) -> Callable[[Board], None]:
    return lambda broken: first(broken).update({key: value})


def of_board(key: str, value: Any) -> Callable[[Board], None]:
    return lambda broken: broken.update({key: value})


def of_variable(key: str, value: Any) -> Callable[[Board], None]:
    return lambda broken: broken["templating"]["list"][0].update({key: value})


TARGET = 'target=~"$target"'


BROKEN: list[tuple[str, Callable[[Board], None]]] = [
    ("dashboard-head", of_board("uid", "Good Board")),
    ("dashboard-head", of_board("title", "")),
    ("dashboard-head", of_board("description", "")),
    ("dashboard-head", of_board("schemaVersion", 16)),
    ("dashboard-head", of_board("schemaVersion", 42)),
    ("dashboard-head", of_board("id", 7)),
    ("dashboard-shared", of_board("graphTooltip", 0)),
    ("dashboard-shared", of_board("links", [])),
    ("panel-count", with_panels(25, 8)),
    ("panel-count", with_panels(13, 4)),
    ("panel-id", of_panel("id", 2)),
    ("panel-id", of_panel("id", None)),
    ("panel-grid", of_panel("gridPos", {"x": 20, "y": 9, "w": 6, "h": 4})),
    ("panel-grid", of_panel("gridPos", {"x": 3, "y": 0, "w": 6, "h": 4})),
    ("panel-type", of_panel("type", "trend")),
    ("panel-words", of_panel("title", "")),
    ("panel-words", of_panel("title", "How many, 2?")),
    ("panel-words", of_panel("description", "")),
    ("panel-unit", field("unit", "")),
    ("panel-unit", field("unit", "furlongs")),
    ("panel-no-data", field("noValue", "")),
    ("panel-no-data", field("noValue", "No data")),
    ("panel-colour", field("thresholds", {"steps": [{"color": "hotpink", "value": None}]})),
    ("panel-colour", lambda broken: first(broken)["fieldConfig"]["overrides"].clear()),
    ("panel-colour", lambda b: b["annotations"]["list"][1].update(iconColor="hotpink")),
    ("panel-query", of_panel("targets", [])),
    ("panel-query", lambda b: first(b)["targets"].append(first(b)["targets"][0])),
    ("panel-query", expression("")),
    ("datasource", of_panel("datasource", {"type": "prometheus", "uid": "P1809F7CD"})),
    ("datasource", lambda b: first(b)["targets"][0]["datasource"].update(type="influxdb")),
    ("datasource", lambda b: b["annotations"]["list"][1]["datasource"].update(uid="x")),
    ("promql", expression(f"sum(rate(http_requests_total{{{TARGET}}}[$__rate_interval])")),
    ("rate-interval", expression(f"rate(http_requests_total{{{TARGET}}}[1m])")),
    ("rate-interval", expression(f"increase(http_requests_total{{{TARGET}}}[$__interval])")),
    (
        "no-rate-of-pushed",
        expression('rate(k6_http_reqs_total{testid=~"$testid"}[$__rate_interval])'),
    ),
    (
        "no-rate-of-pushed",
        expression(
            'sum(rate(loadtest:latency_seconds:total{testid=~"$testid"}[$__rate_interval]))'
        ),
    ),
    ("counter-rate", expression(f"http_requests_total{{{TARGET}}}")),
    ("counter-rate", expression(f"sum(max_over_time(x_seconds_count{{{TARGET}}}[$__interval]))")),
    ("bounded", expression("sum(rate(http_requests_total[$__rate_interval]))")),
    ("bounded", expression('sum(up{target=~".*"})')),
    ("bounded", expression(f"max_over_time(up{{{TARGET}}}[1d])")),
    ("bounded", influxql('SELECT max("value") FROM "vus"')),
    (
        "influxql-match",
        influxql('SELECT * FROM "vus" WHERE $timeFilter AND "testid" = \'$testid\''),
    ),
    ("legend", lambda broken: first(broken)["targets"][0].update(legendFormat="")),
    ("variable-used", lambda b: b["templating"]["list"].append(variable("unheard"))),
    ("variable-declared", expression('sum(up{target=~"$target", phase=~"$fase"})')),
    ("variable-words", of_variable("label", "")),
    ("variable-words", of_variable("description", "")),
    ("variable-words", of_variable("current", {})),
    ("variable-words", of_variable("refresh", 1)),
    ("annotations", lambda broken: broken["annotations"]["list"].pop()),
]


def test_every_dashboard_keeps_every_rule() -> None:
    findings = lint(list(all_dashboards().values()))
    assert not findings, "\n" + "\n".join(findings)


def test_every_dashboard_s_file_is_named_by_its_uid() -> None:
    assert {name: b["uid"] for name, b in all_dashboards().items()} == {
        name: name for name in all_dashboards()
    }


def test_a_dashboard_that_keeps_the_rules_is_left_alone() -> None:
    assert judge(board()) == []


@pytest.mark.parametrize(
    ("rule", "break_it"), BROKEN, ids=[f"{rule}-{n}" for n, (rule, _) in enumerate(BROKEN)]
)
def test_a_rule_finds_what_breaks_it(rule: str, break_it: Callable[[Board], None]) -> None:
    broken = copy.deepcopy(board())
    break_it(broken)
    assert {finding.rule for finding in judge(broken)} == {rule}


def test_every_rule_has_been_seen_to_fail() -> None:
    assert {rule for rule, _ in BROKEN} == set(RULES)


def test_panels_of_a_collapsed_row_are_judged_too() -> None:
    broken = board()
    hidden = panel(3) | {"description": ""}
    broken["panels"].append({"type": "row", "id": 9, "title": "More", "panels": [hidden]})
    assert [finding.rule for finding in judge(broken)] == ["panel-words"]


def test_an_excuse_has_a_reason_and_excuses_something() -> None:
    assert all(len(excuse.reason.split()) > 5 for excuse in EXCUSES)
    broken = board()
    first(broken)["description"] = ""
    covers = Excuse("panel-words", "good", "How many, 1?", "a reason")
    idle = Excuse("panel-unit", "good", "How many, 1?", "a reason")
    assert lint([broken], ()) == ["good / How many, 1?: has no description [panel-words]"]
    assert lint([broken], (covers,)) == []
    (said,) = lint([broken], (covers, idle))
    assert "excuses nothing" in said


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('x{a=~"$one"}', {"one"}),
        ("${two:regex} ${three} [[four]]", {"two", "three", "four"}),
        ("=~ /^${five:raw}$/", {"five"}),
        ("$__interval_ms", {"__interval_ms"}),
        ("nothing", set()),
    ],
)
def test_variables_are_found_however_they_are_written(text: str, names: set[str]) -> None:
    assert used_variables(text) == names
