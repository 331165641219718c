"""Users with a period are a closed loop, with both drivers alike."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from spikelab.drivers.k6 import read_summary
from spikelab.statistics.distribution import Distribution
from tests.support.http_server import Server
from tests.support.k6_scripts import K6Runs, needs_k6, plan
from tests.support.locust_scripts import plan_file, run

pytestmark = pytest.mark.timed

PACED = {"name": "p", "kind": "users", "value": 5, "period": "200ms", "duration": "3s"}


def by_k6(folder: Path, server: Server) -> Distribution:
    ran = K6Runs(folder).run("steady", plan(server, [PACED]))
    (phase,) = read_summary(ran.summary_file, {"p": 0})
    assert phase.latency
    return phase.latency


def by_locust(folder: Path, server: Server) -> Distribution:
    file = plan_file(folder, server, [{"start": "0s", **PACED}], "/hello")
    code, said = run(server, "hello.py", [], LAB_PLAN=file)
    assert code == 0, said
    (phase,) = json.loads((folder / "summary.json").read_text())["phases"]
    return Distribution(**phase["latency"])


@pytest.mark.parametrize("measure", [pytest.param(by_k6, marks=needs_k6), by_locust])
def test_a_request_counts_from_when_its_user_was_free(
    tmp_path: Path, server: Server, measure: Callable[[Path, Server], Distribution]
) -> None:
    # Each request begins 0.3 s after it would have been due.
    server.delay_seconds = 0.5
    latency = measure(tmp_path, server)
    assert latency.count == pytest.approx(30, abs=5)
    assert 0.5 <= latency.percentile_seconds(0.5) < 0.6
    assert latency.seconds[-1] < 0.7
