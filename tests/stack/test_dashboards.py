"""What the dashboards ask, the stores answer: every query, after a run of every kind.

The queries are those of the committed JSON, interpolated as Grafana does it, so this needs no
Grafana; `test_grafana.py` asks the same through one.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime

import httpx
import pytest

from grafana.lint.reading import Json, Query, all_dashboards, panel_queries, queries
from grafana.src.signals import load
from spikelab.signals import Signal
from tests.stack.dashboard_runs import Shown, now_ms, stores
from tests.stack.dashboards import Answer, View, ask, interpolated
from tests.support.lab import Lab

pytest_plugins = ["tests.stack.dashboard_fixtures"]
pytestmark = pytest.mark.slow

BOARDS = all_dashboards()
# Panels that rightly have no data after these runs, and why: at most five, none on the two
# dashboards that must always answer.
RIGHTLY_EMPTY: dict[tuple[str, str], str] = {}
NEVER_EMPTY = {"load-test", "tomcat"}
MOST_EMPTY = 5
# What `compare` only carries along: it shows seconds since the start of a run, which are seconds
# since 1970, and at that time there were neither runs to choose from nor phases to mark.
CARRIED = {
    ("compare", place)
    for place in (
        "annotation Phases",
        "annotation Settings",
        "variable driver",
        "variable phase",
        "variable name",
        "variable target",
    )
}
# Of a single good run.
NOT_IN_A_GOOD_RUN = {
    "Why do requests fail?": "none failed",
    "annotation Settings": "the settings were those of before",
}


def asked_of(
    boards: Iterable[Json],
    lab: Lab,
    view: Callable[[Json], View],
    change: Callable[[str], str] = str,
) -> list[Answer]:
    """The answers to all queries of these dashboards, their texts changed at the end."""
    answers = []
    with httpx.Client() as client:
        for board in boards:
            for query in queries(board):
                asked = interpolated(query, board, view(board))
                answers.append(ask(replace(asked, text=change(asked.text)), stores(lab), client))
    return answers


def report(answers: list[Answer]) -> str:
    return "\n" + "\n".join(map(str, answers))


def test_no_query_is_refused_in_an_empty_lab(empty_lab: Lab) -> None:
    view = View(now_ms() - 900_000, now_ms())
    answers = asked_of(BOARDS.values(), empty_lab, lambda _: view)
    refused = [answer for answer in answers if answer.error]
    assert not refused, report(refused)


def test_every_query_returns_data(shown: Shown) -> None:
    answers = asked_of(BOARDS.values(), shown.lab, shown.view)
    assert {answer.asked.query.dashboard for answer in answers} == set(BOARDS)
    empty = {where(answer): answer for answer in answers if not answer.values}
    wrong = [
        answer
        for place, answer in empty.items()
        if answer.error or place not in {*RIGHTLY_EMPTY, *CARRIED}
    ]
    assert not wrong, report(wrong)
    assert {*RIGHTLY_EMPTY, *CARRIED} <= set(empty), "some have data now: take them off the list"


def where(answer: Answer) -> tuple[str, str]:
    return answer.asked.query.dashboard, answer.asked.query.place


def test_the_list_of_panels_that_may_be_empty_is_short() -> None:
    assert len(RIGHTLY_EMPTY) <= MOST_EMPTY
    assert not NEVER_EMPTY & {dashboard for dashboard, _ in RIGHTLY_EMPTY}


def test_load_test_answers_for_one_run_over_the_range_of_its_link(shown: Shown) -> None:
    view = link_view(shown, "k6")
    answers = asked_of([BOARDS["load-test"]], shown.lab, lambda _: view)
    empty = [answer for answer in answers if not answer.values]
    wrong = [answer for answer in empty if where(answer)[1] not in NOT_IN_A_GOOD_RUN]
    assert not wrong, report(wrong)


@pytest.mark.parametrize(
    ("uid", "metric"),
    [
        ("load-test", "loadtest:requests:rate"),
        ("load-test", "events"),
        ("tomcat", "tomcat_threads_busy_threads"),
        ("spike-raw", "http_req_duration"),
        ("compare", "run_series"),
    ],
)
def test_a_metric_of_another_name_is_noticed(shown: Shown, uid: str, metric: str) -> None:
    whole_name = re.compile(rf"(?<![\w:]){re.escape(metric)}(?![\w:])")
    board = [BOARDS[uid]]
    as_it_is = asked_of(board, shown.lab, shown.view)
    renamed = asked_of(
        board, shown.lab, shown.view, lambda text: whole_name.sub("another_name", text)
    )
    lost = [
        before
        for before, after in zip(as_it_is, renamed, strict=True)
        if before.values and not after.values
    ]
    assert lost, f"no query of {uid} needs {metric}"
    print(report(lost))


# Figures.


def link_view(shown: Shown, name: str) -> View:
    """What a run's end-of-test link shows."""
    record = shown.records[name]
    start, end = (
        int(datetime.fromisoformat(record[key]).timestamp() * 1000) for key in ("started", "ended")
    )
    return View(start - 2000, end + 2000, {"testid": record["testid"]})


def panel_query(board: Json, signal: Signal) -> Query:
    """The query of the panel that shows this signal."""
    wanted = signal.query
    (found,) = [query for query in panel_queries(board) if query.text == wanted]
    return found


def figure(shown: Shown, name: str, signal: Signal) -> float:
    """What a figure of `load-test` shows for a run, over the range of the run's link."""
    board = BOARDS["load-test"]
    asked = interpolated(panel_query(board, signal), board, link_view(shown, name))
    assert asked.step_ms is None
    at = datetime.fromtimestamp(asked.end_ms / 1000).astimezone()
    value = shown.lab.prometheus.value(asked.text, at)
    assert value is not None
    return value


COUNTED = {
    "requests": load.REQUESTS_IN_RANGE,
    "failures": load.FAILURES_IN_RANGE,
    "dropped": load.DROPPED_IN_RANGE,
}


@pytest.mark.parametrize(
    ("name", "key"),
    # Locust has no iterations to drop.
    [(n, k) for n in ("k6", "locust", "spike") for k in COUNTED if (n, k) != ("locust", "dropped")],
)
def test_counts_are_those_of_the_run_s_summary(shown: Shown, name: str, key: str) -> None:
    summary = sum(step[key] for step in shown.records[name]["steps"])
    assert figure(shown, name, COUNTED[key]) == summary


@pytest.mark.parametrize("name", ["k6", "locust", "spike"])
def test_p95_is_that_of_the_run_s_summary_within_a_bucket(shown: Shown, name: str) -> None:
    (step,) = shown.records[name]["steps"]
    shown_p95 = figure(shown, name, load.LATENCY_P95_IN_RANGE)
    assert shown_p95 == pytest.approx(step["latency_seconds"]["p95"], rel=0.09)
