"""locust/lib/plan.py and otel.py: what a run is made of. Locust itself is not needed."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from spikelab import paths

sys.path.insert(0, str(paths.ROOT / "locust"))
from lib.otel import set_defaults
from lib.plan import PlanError, parse_plan, read_plan, seconds
from lib.stretch import Stretch


def plan(**changes: Any) -> dict[str, Any]:
    return {
        "testid": "t1",
        "target": {"url": "http://127.0.0.1:8080/"},
        "request": {"method": "GET", "path": "/hello", "timeout": "5s", "keep_alive": False},
        "phases": [{"name": "one", "kind": "rate", "value": 500, "duration": "1m30s"}],
        "slo": ["success >= 99%"],
        "events": {"url": "http://127.0.0.1:8086", "database": "myk6db"},
        **changes,
    }


def phase(name: str, start: str, duration: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "kind": "users",
        "value": 5,
        "start": start,
        "duration": duration,
    } | changes


def test_a_plan_is_read() -> None:
    read = parse_plan(plan())
    assert (read.testid, read.url, read.timeout_seconds) == ("t1", "http://127.0.0.1:8080", 5)
    assert not read.keep_alive
    assert (read.phases[0].kind, read.phases[0].end_seconds) == ("rate", 90)


def test_users_of_a_rate_carry_exactly_the_rate() -> None:
    one = parse_plan(plan()).phases[0]
    for throughput in (0.3, 1, 3, 7):
        users, period = one.users(throughput), one.period_seconds(throughput)
        assert users / period == pytest.approx(500)
        assert 1 / period <= throughput + 1e-9


def test_users_of_a_closed_loop_have_no_period() -> None:
    one = parse_plan(plan(phases=[phase("one", "0s", "5s")])).phases[0]
    assert (one.users(3), one.period_seconds(3)) == (5, 0)


def test_a_phase_says_what_its_users_do() -> None:
    changes = {"ramp_up": "3s", "period": "1.6s", "body_bytes": 4, "most_users": 400, "url": "u"}
    one, two, three = parse_plan(
        plan(
            phases=[
                phase("one", "0s", "5s", **changes),
                phase("two", "5s", "5s", **dict.fromkeys(changes)),
                phase("three", "10s", "5s", kind="rate", value=10),
            ]
        )
    ).phases
    assert (one.ramp_up_seconds, one.users(1)) == (3, 5)
    # Locust's own batches make the ramp: within one of them, a second, users are drawn apart.
    of_one, of_two, of_three = (Stretch.of(each, 1, 100.0, 2.0) for each in (one, two, three))
    assert (of_one.url, of_one.period_seconds, of_one.spread_seconds) == ("u", 1.6, 1)
    assert (of_one.body, of_two.body) == ("xxxx", None)
    assert (of_two.period_seconds, of_two.spread_seconds) == (0, 0)
    assert Stretch.of(three, 2, 100.0, 2.0).period_seconds == 0.5
    assert (of_three.ends_at, of_three.late_from) == (105, 107)
    # Users have no times at which requests are due.
    assert (of_one.ends_at, of_one.late_from) == (105, math.inf)


def test_the_statuses_of_a_good_answer_are_those_of_the_plan() -> None:
    assert parse_plan(plan()).expect == frozenset(range(200, 300))
    assert parse_plan(plan(request={"expect": ["2xx", 302]})).expect == {*range(200, 300), 302}
    assert read_plan("hello", environ={"EXPECT": "200, 3xx"}).expect == {200, *range(300, 400)}
    with pytest.raises(PlanError, match='expect "2x"'):
        parse_plan(plan(request={"expect": ["2x"]}))


@pytest.mark.parametrize(("method", "sent"), [("GET", "POST"), ("PUT", "PUT"), ("PATCH", "PATCH")])
def test_a_body_by_size_needs_a_method_that_carries_it(method: str, sent: str) -> None:
    assert parse_plan(plan(request={"method": method})).method_with_body == sent


def test_phases_are_put_in_order_and_may_touch() -> None:
    read = parse_plan(plan(phases=[phase("two", "5s", "5s"), phase("one", "0s", "5s")]))
    assert [each.name for each in read.phases] == ["one", "two"]


@pytest.mark.parametrize(
    ("phases", "says"),
    [
        ([phase("one", "0s", "6s"), phase("two", "5s", "5s")], '"two" starts before "one" ends'),
        ([phase("one", "0s", "5s", kind="ramp")], 'kind "ramp"'),
        ([phase("one", "0s", "5s", value=0)], "above 0"),
        ([phase("one", "0s", "5s", value=True)], "above 0"),
        ([phase("one", "0s", "5s", value=1.5)], "whole number"),
        ([phase("one", "0s", "5 s")], "number with a unit"),
        ([phase("one", "0s", "")], "number with a unit"),
        ([phase("one", "0s", "900ms")], '"one": ends less than 1s'),
        ([phase("one", "0s", "5s"), phase("two", "5.5s", "5s")], '"two" starts less than 1s'),
        ([phase("one", "0s", "5s", ramp_up="6s")], "ramp_up is longer"),
        ([phase("one", "0s", "5s", kind="rate", ramp_up="1s")], "for kind users"),
        ([phase("one", "0s", "5s", kind="rate", period="1s")], "for kind users"),
        ([phase("one", "0s", "5s", kind="rate", jitter="1s")], "jitter is for k6"),
        ([phase("one", "0s", "5s", body_bytes=-1)], "body_bytes -1"),
        ([phase("one", "0s", "5s", body_bytes="1k")], "body_bytes 1k"),
    ],
)
def test_a_wrong_phase_is_named(phases: list[dict[str, Any]], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        parse_plan(plan(phases=phases))


def test_durations_are_read_in_seconds() -> None:
    assert [seconds(text) for text in ("250ms", "1.5s", "1m30s", "2h")] == [0.25, 1.5, 90, 7200]


@pytest.mark.parametrize("text", ['{"testid":', "[]", '{"testid": "t1"}'])
def test_a_file_that_is_no_plan_gets_one_line_that_names_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(PlanError, match=r"LAB_PLAN=.*plan\.json") as caught:
        read_plan("hello", environ={"LAB_PLAN": str(path)})
    assert "\n" not in str(caught.value)


def test_a_run_by_hand_has_no_phases_and_a_testid_of_its_own() -> None:
    first, second = (read_plan("hello", environ=environ) for environ in ({}, {"TESTID": "mine"}))
    assert first.phases == ()
    assert "-locust-hello-" in first.testid
    assert second.testid == "mine"
    assert read_plan("authz", "/api/v1/authz/ping", {}).path == "/api/v1/authz/ping"


def test_the_plan_of_the_environment_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan()))
    environ = {"LAB_PLAN": str(path), "TESTID": "not-this"}
    assert read_plan("hello", environ=environ).testid == "t1"


def test_otel_gets_defaults_and_labels() -> None:
    environ = {"PROMETHEUS_URL": "http://prometheus:9090"}
    assert set_defaults(environ, "a,b c") == "a,b c"
    assert environ["OTEL_RESOURCE_ATTRIBUTES"] == "testid=a%2Cb%20c,driver=locust"
    endpoint = environ["OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"]
    assert endpoint == "http://prometheus:9090/api/v1/otlp/v1/metrics"
    assert "instance" not in str(environ)


def test_otel_variables_of_the_user_stay_and_name_the_run() -> None:
    environ = {
        "OTEL_RESOURCE_ATTRIBUTES": "team=x,testid=my%20run",
        "OTEL_METRIC_EXPORT_INTERVAL": "5",
    }
    assert set_defaults(environ, "t1") == "my run"
    assert environ["OTEL_RESOURCE_ATTRIBUTES"] == "team=x,testid=my%20run"
    assert environ["OTEL_METRIC_EXPORT_INTERVAL"] == "5"
