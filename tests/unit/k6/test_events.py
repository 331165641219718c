"""k6/lib/boundaries.js: regions of phases, against a real HTTP server that takes the points."""

import time
from typing import Any

import pytest

from tests.support.http_server import Server
from tests.support.k6_scripts import K6Runs, needs_k6, plan, unused_url

pytestmark = needs_k6


def three_phases(server: Server) -> dict[str, Any]:
    phases = [
        {"name": name, "kind": "rate", "value": 10, "start": f"{second}s", "duration": "1s"}
        for second, name in enumerate(("one", "two", "three"))
    ]
    return plan(server, phases)


def test_a_region_opens_when_its_phase_begins_and_closes_when_it_ends(
    k6: K6Runs, server: Server
) -> None:
    running = k6.start("steady", three_phases(server))
    while not server.requests:
        time.sleep(0.01)
    assert {name: state for name, (state, _, _) in server.regions().items()} == {"one": "open"}
    while len(server.regions()) < 2:
        time.sleep(0.01)
    started_ms = server.regions()["one"][1]
    assert time.time() * 1000 - started_ms == pytest.approx(1000, abs=300)
    assert server.regions() == {
        "one": ("closed", started_ms, started_ms + 1000),
        "two": ("open", started_ms + 1000, started_ms + 2000),
    }
    run = running.wait()
    assert run.code == 0, run.said
    assert run.summary["setup_data"]["started_ms"] == started_ms
    assert server.regions() == {
        name: ("closed", started_ms + second * 1000, started_ms + second * 1000 + 1000)
        for second, name in enumerate(("one", "two", "three"))
    }
    assert 'title="one",text="10 rate",tags="k6,rate"' in server.points[0]


def test_an_interrupted_run_leaves_no_phase_that_never_began(k6: K6Runs, server: Server) -> None:
    running = k6.start("steady", three_phases(server))
    while len(server.regions()) < 2:
        time.sleep(0.01)
    time.sleep(0.2)
    interrupted_ms = time.time() * 1000
    running.interrupt()
    running.wait()
    regions = server.regions()
    assert [(name, state) for name, (state, _, _) in regions.items()] == [
        ("one", "closed"),
        ("two", "closed"),  # less than a second early
    ]
    assert regions["two"][2] == pytest.approx(interrupted_ms, abs=500)


def test_a_phase_cut_short_by_more_than_a_second_is_aborted(k6: K6Runs, server: Server) -> None:
    phases = [{"name": "long", "kind": "users", "value": 2, "duration": "1m", "period": "50ms"}]
    running = k6.start("steady", plan(server, phases))
    while not server.requests:
        time.sleep(0.01)
    running.interrupt()
    running.wait()
    state, _, ends_ms = server.regions()["long"]
    assert state == "aborted"
    assert ends_ms <= time.time() * 1000


def test_a_spike_ends_with_its_last_answer(k6: K6Runs, server: Server) -> None:
    server.delay_seconds = 0.5
    phases = [{"name": "spike", "kind": "users", "value": 10, "duration": "1m"}]
    run = k6.run("spike", plan(server, phases))
    assert run.code == 0, run.said
    state, started_ms, ends_ms = server.regions()["spike"]
    assert state == "closed"
    assert ends_ms - started_ms == pytest.approx(600, abs=300)


def test_a_later_spike_opens_when_it_begins(k6: K6Runs, server: Server) -> None:
    phases = [
        {"name": name, "kind": "users", "value": 5, "start": start, "duration": "30s"}
        for name, start in (("first", "0s"), ("second", "1s"))
    ]
    run = k6.run("spike", plan(server, phases))
    assert run.code == 0, run.said
    first, second = server.regions()["first"], server.regions()["second"]
    assert second[1] - first[1] == 1000
    assert "phase=second" in server.points[1]
    assert 'state="open"' in server.points[1]


def test_a_store_that_was_away_has_everything_in_the_end(k6: K6Runs, server: Server) -> None:
    server.store_status = 503
    running = k6.start("steady", three_phases(server))
    while len(server.requests) < 25:
        time.sleep(0.01)
    server.store_status = 204
    run = running.wait()
    assert run.code == 0, run.said
    assert {name: state for name, (state, _, _) in server.regions().items()} == dict.fromkeys(
        ("one", "two", "three"), "closed"
    )


@pytest.mark.parametrize("broken", ["slow", "away"])
def test_a_broken_store_neither_slows_nor_fails_a_run(
    k6: K6Runs, server: Server, broken: str
) -> None:
    server.store_delay_seconds = 3 if broken == "slow" else 0
    given = three_phases(server)
    if broken == "away":
        given["events"]["url"] = unused_url()
    run = k6.run("steady", given, "--throw")
    assert run.code == 0, run.said
    assert run.count("attempts") == pytest.approx(30, abs=3)
    assert run.summary["metrics"]["http_req_failed"]["passes"] == 0
    started = run.summary["metrics"]["attempt_started{scenario:one}"]
    assert started["min"] < 500  # a phase's times begin with its load
    assert run.seconds < 3 + 4


def test_the_tag_of_the_command_line_is_the_events_testid(k6: K6Runs, server: Server) -> None:
    phases = [{"name": "spike", "kind": "users", "value": 1, "duration": "5s"}]
    k6.run("spike", plan(server, phases), "--tag", "testid=by hand")
    assert server.points[0].startswith(r"events,testid=by\ hand,driver=k6,phase=spike ")
