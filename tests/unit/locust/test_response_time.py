"""What a user of Locust waited: from when a request was due to its last byte, in all its parts."""

import itertools
import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from spikelab import paths
from spikelab.drivers.locust import Locust
from spikelab.measure import latency_basis
from spikelab.plans.model import Phase
from tests.support.http_server import Server
from tests.support.locust_scripts import LONGEST_SECONDS, HasUrl, plan_file, run, start
from tests.support.tls_server import slow_handshakes

pytestmark = pytest.mark.timed


def measured(
    folder: Path, site: HasUrl, phases: list[dict[str, Any]], **request: object
) -> list[dict[str, Any]]:
    plan = plan_file(folder, site, phases, "/hello", **request)
    code, said = run(site, "hello.py", [], LAB_PLAN=plan)
    assert code in {0, 99}, said
    return phases_in(folder)


def phases_in(folder: Path) -> list[dict[str, Any]]:
    phases: list[dict[str, Any]] = json.loads((folder / "summary.json").read_text())["phases"]
    for phase in phases:
        if phase["latency"]["count"]:
            parts = phase["latency_parts_seconds"]
            assert sum(parts.values()) == pytest.approx(phase["latency_mean_seconds"], abs=1e-9)
    return phases


RATE: dict[str, Any] = {"name": "one", "kind": "rate", "value": 20, "duration": "3s"}


def test_a_handshake_that_takes_long_is_in_the_response_time(tmp_path: Path) -> None:
    with slow_handshakes(tmp_path, 0.2) as url:
        (phase,) = measured(tmp_path, SimpleNamespace(url=url), [RATE], keep_alive=False)
    assert phase["failures"] == 0
    assert phase["latency"]["seconds"][0] >= 0.2
    parts = phase["latency_parts_seconds"]
    assert 0.15 < parts["tls"] < 0.3
    assert 0 < parts["connecting"] < 0.05
    # The server's pause begins when it has the connection; a busy client hears of that later.
    assert parts["tls"] + parts["connecting"] >= 0.2
    assert 0 < parts["sending"] < 0.05
    assert 0 < parts["waiting"] < 0.05
    assert 0 < parts["waiting_for_connection"] < 0.05


def test_a_request_that_is_due_while_its_user_waits_has_waited_as_well(
    tmp_path: Path, server: Server
) -> None:
    # Each of twenty users sends one a second; one of the answers takes two.
    server.delays = itertools.chain([0.0] * 25, [2.0], itertools.repeat(0.0))
    (phase,) = measured(tmp_path, server, [{**RATE, "duration": "4s"}])
    *others, second, first = phase["latency"]["seconds"]
    assert first == pytest.approx(2, abs=0.3)
    assert second == pytest.approx(1, abs=0.3)  # due after one second, begun after two
    assert max(others) < 0.3
    # The target's doing, not the driver's.
    assert phase["lateness"]["max"] < 0.3


def test_requests_of_a_closed_loop_count_from_their_start(tmp_path: Path, server: Server) -> None:
    server.delay_seconds = 0.05
    closed = {"name": "one", "kind": "users", "value": 4, "duration": "2s"}
    (phase,) = measured(tmp_path, server, [closed])
    assert 0.05 <= phase["latency"]["seconds"][0] < 0.07
    assert 0.05 <= phase["latency_parts_seconds"]["waiting"] < 0.07
    assert phase["latency_parts_seconds"]["lateness"] < 0.001


@pytest.mark.parametrize("processes", [[], ["--processes=1"]])
def test_a_driver_that_stood_still_says_so(
    tmp_path: Path, server: Server, processes: list[str]
) -> None:
    """In every kind of phase, and the requests that were due then have waited."""
    phases = [
        {**RATE, "duration": "5s"},
        {"name": "paced", "kind": "users", "value": 20, "period": "1s", "duration": "5s"},
        {"name": "closed", "kind": "users", "value": 4, "duration": "5s"},
    ]
    for number, phase in enumerate(phases):
        phase["start"] = f"{number * 5}s"
    server.delay_seconds = 0.02
    plan = plan_file(tmp_path, server, phases, "/hello")
    locust = start(server, "hello.py", ["--headless", *processes], LAB_PLAN=plan)
    try:
        for number in range(1, 4):
            wait_for_phase(server, number)
            time.sleep(2)
            worker = psutil.Process(locust.pid)
            if processes:
                (worker,) = worker.children()
            worker.suspend()
            time.sleep(0.9)
            worker.resume()
    finally:
        said, _ = locust.communicate(timeout=LONGEST_SECONDS)
    assert locust.returncode == 0, said
    rate, paced, closed = phases_in(tmp_path)
    for phase in (rate, paced, closed):
        assert 0.7 < phase["lateness"]["p99"] < 1.2, phase["name"]
        assert phase["lateness"]["p50"] < 0.1
    for phase in (rate, paced):
        # 18 of a hundred were due while it stood still, evenly spread over it.
        assert sum(seconds > 0.2 for seconds in phase["latency"]["seconds"]) >= 8


def wait_for_phase(server: Server, number: int) -> None:
    """Until the event of so many phases was written."""
    until = time.monotonic() + LONGEST_SECONDS
    while len(server.regions()) < number:
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize(("expect", "good"), [(["2xx"], False), (["2xx", 302], True)])
def test_a_redirect_is_an_answer_and_not_followed(
    tmp_path: Path, server: Server, expect: list[Any], good: bool
) -> None:
    elsewhere = Server()
    server.status, server.location = 302, f"{elsewhere.url}/page"
    try:
        (phase,) = measured(tmp_path, server, [RATE], expect=expect)
    finally:
        elsewhere.close()
    assert not elsewhere.requests
    assert phase["requests"] == phase["completed"] == len(server.requests) > 20
    assert phase["errors"]["other"] == phase["failures"] == (0 if good else phase["requests"])
    assert phase["bodies"] == ([] if good else ["302: hello"])


# Each of its users sends a second request without `send`.
_BY_ITSELF = """
from locust import task

from lib.session import begin
from lib.shape import PlanShape
from lib.user import LabUser

SESSION = begin("hello")


class Both(LabUser):
    session = SESSION

    @task
    def both(self):
        self.send()
        self.client.get("/own")


class Phases(PlanShape):
    session = SESSION
"""


def test_a_request_that_a_script_sends_by_itself_takes_the_parts_away(
    tmp_path: Path, server: Server
) -> None:
    """The lab then calls the run's latencies Locust's own."""
    script = tmp_path / "both.py"
    script.write_text(_BY_ITSELF)
    plan = plan_file(tmp_path, server, [{**RATE, "duration": "2s"}], "/hello")
    code, said = run(server, str(script), [], LAB_PLAN=plan, PYTHONPATH=str(paths.LOCUST))
    assert code == 0, said
    (tmp_path / "summary.json").rename(tmp_path / Locust.summary_file)
    (phase,) = Locust().read_summary(tmp_path, [Phase.model_validate(RATE)])
    assert phase.latency.count > 40
    assert phase.latency_parts_seconds is None
    assert latency_basis([phase]) == "request"
