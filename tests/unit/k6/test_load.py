"""k6/*.js put the load on the target that a plan asks for: counted where it arrives."""

from collections import Counter
from typing import Any

import pytest

from spikelab.drivers.k6 import read_summary
from tests.support.http_server import Server
from tests.support.k6_scripts import K6Runs, Run, needs_k6, plan

pytestmark = [needs_k6, pytest.mark.timed]


def phase(name: str, kind: str, value: float, duration: str, **keys: object) -> dict[str, Any]:
    return {"name": name, "kind": kind, "value": value, "duration": duration, **keys}


def offered(run: Run) -> list[tuple[str, float]]:
    return [
        (each["data"]["tags"]["scenario"], each["data"]["value"])
        for each in run.samples
        if each["metric"] == "lab_offered_rate"
    ]


def test_rates_one_after_the_other_are_kept_and_offered(k6: K6Runs, server: Server) -> None:
    phases = [
        phase("slow", "rate", 50, "1s"),
        phase("fast", "rate", 100, "1s", start="1s"),
    ]
    run = k6.run("steady", plan(server, phases))
    assert run.code == 0, run.said
    slow, fast = read_summary(run.summary_file, {"slow": 0, "fast": 1})
    assert slow.requests == pytest.approx(50, abs=1)
    assert fast.requests == pytest.approx(100, abs=1)
    assert (slow.failures, fast.failures, slow.dropped, fast.dropped) == (0, 0, 0, 0)
    assert len(server.requests) == slow.requests + fast.requests
    seen = offered(run)
    # What happens in one moment has no order.
    assert [rate for name, rate in seen if name == "slow"] == [50, 0]
    assert [rate for name, rate in seen if name == "fast"] == [100, 0]


def test_phases_may_overlap(k6: K6Runs, server: Server) -> None:
    phases = [phase("base", "rate", 20, "2s"), phase("burst", "users", 5, "1s", start="500ms")]
    run = k6.run("steady", plan(server, phases, path="/hello"))
    assert run.count("attempts{scenario:base}") == pytest.approx(40, abs=1)
    assert run.count("attempts{scenario:burst}") > 5


def test_a_rate_may_be_a_fraction(k6: K6Runs, server: Server) -> None:
    run = k6.run("step", plan(server, [phase("step", "rate", 12.5, "2s")]))
    assert run.count("attempts{scenario:step}") == pytest.approx(25, abs=1)


def test_a_ramp_begins_where_the_phase_before_it_ended(k6: K6Runs, server: Server) -> None:
    phases = [phase("up", "rate", 100, "2s"), phase("down", "rate", 0, "1s", start="2s")]
    run = k6.run("ramp", plan(server, phases))
    assert run.count("attempts{scenario:up}") == pytest.approx(100, abs=3)
    assert run.count("attempts{scenario:down}") == pytest.approx(50, abs=3)
    assert offered(run)[0] == ("up", 0)
    assert ("down", 100) in offered(run)
    between = [rate for name, rate in offered(run) if name == "up" and 0 < rate < 100]
    assert between == sorted(between)


def test_users_with_a_period_send_at_users_through_period(k6: K6Runs, server: Server) -> None:
    phases = [phase("users", "users", 50, "2s", period="500ms")]
    run = k6.run("steady", plan(server, phases))
    # One begins each 10 ms, so a machine that is 50 ms late at the end misses five.
    assert run.count("attempts{scenario:users}") == pytest.approx(200, abs=5)
    begun = [each["data"]["value"] for each in run.samples if each["metric"] == "attempt_started"]
    # Spread over the first period, not all at once.
    assert max(Counter(int(ms // 100) for ms in begun if ms < 500).values()) < 30


def test_users_are_started_evenly(k6: K6Runs, server: Server) -> None:
    phases = [phase("users", "users", 20, "2s", ramp_up="1s", period="10s")]
    run = k6.run("steady", plan(server, phases))
    assert run.count("attempts{scenario:users}") == 20
    started = run.summary["metrics"]["attempt_started{scenario:users}"]
    assert started["max"] - started["min"] == pytest.approx(950, abs=200)


def test_a_user_in_a_pause_neither_prolongs_a_phase_nor_fails(k6: K6Runs, server: Server) -> None:
    run = k6.run("soak", {**by_hand(server), "VUS": 5, "PERIOD": "60s", "DURATION": "1s"})
    assert run.seconds < 4
    assert run.code in (0, 99)  # without a request no objective is met
    assert run.count("failures") == 0


def test_what_is_on_its_way_at_the_end_is_still_counted(k6: K6Runs, server: Server) -> None:
    server.delay_seconds = 1.5
    run = k6.run("steady", plan(server, [phase("steady", "rate", 10, "1s")]))
    assert run.count("attempts") == run.summary["metrics"]["http_req_failed"]["fails"]


def test_a_rate_that_finds_no_free_user_is_invalid(k6: K6Runs, server: Server) -> None:
    server.delay_seconds = 5
    run = k6.run("step", plan(server, [phase("step", "rate", 20, "1s", most_users=3)]))
    assert run.code == 99
    assert run.count("attempts{scenario:step}") == 3
    assert run.count("dropped_iterations{scenario:step}") == pytest.approx(17, abs=1)
    assert run.count("failures{scenario:step,class:request_timeout}") == 3


def test_churn_opens_a_connection_for_each_request(k6: K6Runs, server: Server) -> None:
    run = k6.run("churn", plan(server, [phase("churn", "rate", 50, "1s")]) | {"events": None})
    assert server.connections == len(server.requests) == run.count("attempts")
    server.connections = 0
    k6.run("steady", plan(server, [phase("steady", "users", 3, "1s")]) | {"events": None})
    assert server.connections == 3


def test_bodies_have_the_size_of_their_phase(k6: K6Runs, server: Server) -> None:
    sizes = {**by_hand(server), "SIZES": "500B,2kB,1KiB", "RATE": 5, "DURATION": "1s"}
    run = k6.run("bodies", sizes)
    assert run.code == 0, run.said
    seen = Counter((each.method, each.path, each.bytes) for each in server.requests)
    assert set(seen) == {("POST", "/echo", 500), ("POST", "/echo", 2000), ("POST", "/echo", 1024)}
    assert "xxx" not in run.exported_file.read_text()


def test_a_plan_s_own_body_and_method_are_sent(k6: K6Runs, server: Server) -> None:
    own = {"method": "PUT", "body": "grün"}
    k6.run("step", plan(server, [phase("step", "rate", 5, "1s")], **own))
    assert {(each.method, each.bytes) for each in server.requests} == {("PUT", 5)}


def test_names_leave_the_query_out(k6: K6Runs, server: Server) -> None:
    run = k6.run("spike", {**by_hand(server), "VUS": 3, "MS": 7})
    assert {each.path for each in server.requests} == {"/hello?ms=7"}
    names = {each["data"]["tags"].get("name") for each in run.samples}
    assert names == {None, "/hello"}
    protocols = {each["data"]["tags"].get("proto") for each in run.samples}
    assert protocols == {None, "HTTP/1.1"}


def by_hand(server: Server) -> dict[str, object]:
    return {"BASE_URL": server.url, "INFLUXDB_URL": ""}
