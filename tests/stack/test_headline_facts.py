"""The facts that the README and the docs lead with, on the real stack.

8,293 connections, 1 / 1 / 1 and the waves: docs/connections.md. The closed loop that hides a
freeze: docs/drivers.md. In containers, and with 10,000 users: tests/compose/test_headline_facts.py.
"""

import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spikelab import paths
from spikelab.machine import sysctl
from spikelab.prediction.check import in_short
from spikelab.results.run import RunRecord
from tests.reliability import saw_on_host
from tests.stack.processes import freeze
from tests.support.faults import meanwhile, phase, plan
from tests.support.lab import Lab, errors_in_record, errors_in_series, target_settings

_SETTINGS = 12
SERVICE_SECONDS = 2
ALL_AS_PREDICTED = "yes: 6 of 6 figures measured, all within"


@pytest.mark.crowded
@pytest.mark.slow
def test_the_defaults_hold_8293_connections_and_other_settings_as_many_as_predicted(
    lab: Lab,
) -> None:
    """1 / 1 / 1, the defaults and an accept-count above somaxconn among them; the rest random."""
    result = subprocess.run(
        [sys.executable, "-m", "bench.connections", "--settings", str(_SETTINGS)],
        cwd=paths.ROOT,
        env=lab.env,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    found = re.findall(
        r"max-connections +(\d+), accept-count +(\d+),.* measured +(\d+), equal", result.stdout
    )
    counted = {(int(most), int(queue)): int(held) for most, queue, held in found}
    assert len(found) == _SETTINGS
    assert counted[1, 1] == 3
    assert counted[8192, 100] == 8293
    somaxconn = int(sysctl("net/core/somaxconn") or 0)
    assert counted[100, 5000] == 100 + min(5000, somaxconn) + 1


def test_with_1_thread_1_connection_and_1_place_in_the_queue_3_users_succeed(lab: Lab) -> None:
    smallest = target_settings(
        TOMCAT_MAX_THREADS=1,
        TOMCAT_MAX_CONNECTIONS=1,
        TOMCAT_ACCEPT_COUNT=1,
        # The next one is served when an idle connection is closed: after the last moment (15 s) at
        # which a user tries again to connect, before k6 gives up (30 s).
        TOMCAT_KEEP_ALIVE_TIMEOUT=16_000,
    )
    # Answers after 1, 18 and 35 s; a fourth would come after 52.
    load = ("users=10", "request.path=/hello?ms=1000", "request.timeout=45s")
    sets = (f"--set={value}" for value in load)
    record = lab.run("tomcat-spike", *sets, *smallest, exit_code=99)
    assert record["connections"]["predicted"] == 3
    assert record["connections"]["established_peak"] == 3
    assert record["connections"]["policy"] == "keep-alive"
    step = record["steps"][0]
    assert (step["requests"], step["failures"]) == (10, 7)
    assert sum(errors_in_record(record).values()) == 7
    assert errors_in_series(lab, record["testid"]) == errors_in_record(record)
    assert in_short(RunRecord.model_validate(record)) == ALL_AS_PREDICTED


@pytest.mark.timed
def test_1000_users_on_200_threads_are_answered_in_five_waves(lab: Lab) -> None:
    record = lab.run("tomcat-spike", "--set", f"request.path=/hello?ms={1000 * SERVICE_SECONDS}")
    step = record["steps"][0]
    assert (step["requests"], step["failures"]) == (1000, 0)
    assert record["verdict"] == "pass"
    assert [wave["answers"] for wave in step["waves"]] == [200] * 5
    at = [wave["at_seconds"] for wave in step["waves"]]
    assert [later - earlier for earlier, later in itertools.pairwise(at)] == pytest.approx(
        [SERVICE_SECONDS] * 4, abs=0.5
    )
    assert step["latency_seconds"]["max"] == pytest.approx(5 * SERVICE_SECONDS, abs=2.5)
    assert record["connections"]["established_peak"] == 1000
    assert in_short(RunRecord.model_validate(record)) == ALL_AS_PREDICTED


@pytest.mark.timed
def test_an_open_loop_shows_that_the_target_froze(lab: Lab, tmp_path: Path) -> None:
    frozen = meanwhile(lab, lambda: freeze(lab, "java", 5))
    phases = [phase("before", 3), phase("during", 12)]
    record = lab.run(plan(tmp_path, phases=phases), exit_code=99)
    frozen.result()
    before, during = record["steps"]
    assert before["verdict"] == "pass"
    # Of 12 s 5 are lost: 250 users (2.5 s of the rate) wait for 3 s, others are dropped meanwhile.
    assert during["dropped"] > 25
    assert during["errors"]["request_timeout"] > 50
    assert during["latency_with_failures_seconds"]["p99"] is None
    assert during["generator"]["limited"] is False
    assert during["verdict"] == "fail"
    failed = f"{during['failures']} of {during['requests']} requests failed"
    saw_on_host(
        "frozen for 5 s, open loop", "the target", f"{failed}, {during['dropped']} dropped", record
    )


@pytest.mark.timed
def test_a_closed_loop_hides_that_the_target_froze(lab: Lab, tmp_path: Path) -> None:
    users = [
        {"name": name, "kind": "users", "value": 10, "period": "100ms", "duration": duration}
        for name, duration in (("before", "3s"), ("during", "25s"))
    ]
    frozen = meanwhile(lab, lambda: freeze(lab, "java", 5))
    record = lab.run(plan(tmp_path, phases=users, slo=["p95 < 1s"]))
    frozen.result()
    during = record["steps"][1]
    # Ten users sent nothing for five seconds: 20 requests or so of 2,000 were late.
    assert during["failures"] <= 20
    assert during["latency_seconds"]["p99"] < 1
    assert record["verdict"] == "pass"
    failed = f"{during['failures']} of {during['requests']} requests failed: users wait with it"
    saw_on_host("frozen for 5 s, closed loop", "the target", failed, record)
