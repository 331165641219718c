"""k6/*.js count answers that were too slow or too late, and start requests by chance."""

from itertools import cycle, pairwise
from typing import Any

import pytest

from spikelab.drivers.k6 import read_summary
from tests.support.http_server import Server
from tests.support.k6_scripts import K6Runs, needs_k6, plan

pytestmark = [needs_k6, pytest.mark.timed]


def rate(value: float, duration: str, **keys: object) -> dict[str, Any]:
    return {"name": "one", "kind": "rate", "value": value, "duration": duration, **keys}


def test_slow_answers_are_counted_for_each_limit(k6: K6Runs, server: Server) -> None:
    server.delays = cycle([0.5, 0.0, 0.0, 0.0, 1.2, 0.0, 0.0, 0.0, 0.0, 0.0])
    slo = ["p99<=800ms", "success >= 90%", "p95 < 250ms", "p50 < 5s", "p95 < 250ms"]
    given = plan(server, [rate(50, "2s")]) | {"slo": slo}
    (found,) = read_summary(k6.run("steady", given).summary_file, {"one": 0})
    tens = found.requests // 10
    assert found.slow == {
        "p99<=800ms": pytest.approx(tens, abs=1),
        "p95 < 250ms": pytest.approx(2 * tens, abs=1),
        "p50 < 5s": 0,
    }
    assert found.late_answers == 0


@pytest.mark.parametrize("script", ["steady", "spike"])
def test_by_hand_k6_judges_and_a_failed_request_is_infinite(
    k6: K6Runs, server: Server, script: str
) -> None:
    load = {"RATE": 20} if script == "steady" else {"VUS": 20}
    by_hand = {"BASE_URL": server.url, "INFLUXDB_URL": "", "DURATION": "1s", **load}
    judged = {**by_hand, "SLO": "p95 < 500ms, p50 < 5s"}
    assert k6.run(script, judged).code == 0
    server.delays = cycle([0.6])
    slow = k6.run(script, judged)
    assert slow.code == 99
    crossed = slow.said.split("thresholds on metrics")[1]
    assert f"response_time_with_failures{{scenario:{script}}}" in crossed
    server.delays, server.status = None, 503
    assert k6.run(script, judged).code == 99


def test_a_failed_request_is_neither_slow_nor_late(k6: K6Runs, server: Server) -> None:
    server.status, server.delay_seconds = 503, 1.5
    given = plan(server, [rate(10, "1s", most_users=50)]) | {"slo": ["p95 < 100ms"]}
    (found,) = read_summary(k6.run("steady", given).summary_file, {"one": 0})
    assert found.failures == found.requests
    assert (found.slow, found.late_answers) == ({"p95 < 100ms": 0}, 0)


def test_phases_have_objectives_of_their_own(k6: K6Runs, server: Server) -> None:
    # Answered a second and the limit after the phase's end: a queue that it left.
    server.delay_seconds = 2.6
    phases = [
        rate(20, "1s", most_users=100, slo=["p95 < 1500ms"]),
        rate(20, "1s", most_users=100) | {"name": "two"},
        {"name": "users", "kind": "users", "value": 1, "duration": "1s"},
    ]
    run = k6.run("steady", plan(server, phases, timeout="9s") | {"slo": ["p90 < 4s"]})
    one, two, users = read_summary(run.summary_file, {"one": 0, "two": 0, "users": 0})
    # By hand k6 judges; a run of the lab is judged by the lab.
    assert run.code == 0
    assert one.slow == {"p95 < 1500ms": one.requests}
    assert one.late_answers == one.requests
    assert (two.slow, two.late_answers) == ({"p90 < 4s": 0}, 0)
    assert (users.slow, users.late_answers) == ({"p90 < 4s": 0}, None)


# By chance, 1 - exp(-1/2) = 39 % of the gaps are shorter than half their mean, evenly none. A
# machine that stalls for a moment changes that little, while it doubles the gaps' deviation.
@pytest.mark.parametrize(
    ("jitter", "seconds", "least", "most"), [(1, 5, 0.3, 0.5), (0, 3, 0.0, 0.2)]
)
def test_with_jitter_requests_come_by_chance(
    k6: K6Runs, server: Server, jitter: int, seconds: int, least: float, most: float
) -> None:
    given = plan(server, [rate(100, f"{seconds}s", jitter=f"{jitter}s")])
    (found,) = read_summary(k6.run("steady", given).summary_file, {"one": 0})
    assert found.requests == pytest.approx(100 * seconds, abs=1)
    assert found.dropped == 0
    came = sorted(request.came for request in server.requests)
    # Of random moments the first is not quite at the beginning, nor the last at the end.
    assert seconds + 0.5 * jitter - 0.3 < came[-1] - came[0] < seconds + jitter + 0.3
    # Not the second in which they become more, nor that in which they become fewer.
    steady = [time for time in came if came[0] + jitter < time < came[0] + seconds]
    gaps = [after - before for before, after in pairwise(steady)]
    assert least <= sum(gap < 0.5 / 100 for gap in gaps) / len(gaps) <= most


def test_jitter_is_for_rates(k6: K6Runs, server: Server) -> None:
    phases = [{"name": "one", "kind": "users", "value": 1, "duration": "1s", "jitter": "1s"}]
    run = k6.run("steady", plan(server, phases))
    assert run.code == 108
    assert "jitter 1s belongs to the kind" in run.said
    by_hand = {"BASE_URL": server.url, "VUS": 1, "JITTER": "1s"}
    assert "JITTER=1s: is of no use here" in k6.run("steady", by_hand).said
