"""Connections that the real target holds: predicted from settings, counted at the server."""

import re
import subprocess
import sys

import pytest

from spikelab import paths
from spikelab.host_facts import sysctl
from spikelab.prediction.compare import within
from spikelab.record import RunRecord
from tests.stack.conftest import Lab, errors_in_record
from tests.stack.processes import process_of

pytestmark = pytest.mark.alone

_SETTINGS = 12
# Leaves out 8192 / 100, which has a test of its own.
_MOST_USERS = 4500


@pytest.mark.slow
def test_predicted_connections_are_those_that_the_server_holds(lab: Lab) -> None:
    """1 / 1 / 1 and an accept-count above somaxconn among them; the rest random."""
    result = subprocess.run(
        [
            sys.executable,
            "-m",
            "bench.connections",
            "--settings",
            str(_SETTINGS),
            "--most-users",
            str(_MOST_USERS),
        ],
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
    somaxconn = int(sysctl("net/core/somaxconn") or 0)
    assert counted[100, 5000] == 100 + min(5000, somaxconn) + 1


@pytest.mark.slow
def test_10000_users_on_defaults_stop_at_8293_connections(lab: Lab) -> None:
    # Half a minute shorter than the plan: a user who cannot connect gives up after 30 s.
    patience = ("--set", "request.timeout=35s")
    record = lab.run("tomcat-spike", "--set", "users=10000", *patience, exit_code=99)
    connections = record["connections"]
    assert connections["predicted"] == 8293
    assert connections["established_peak"] == 8293
    assert (connections["accept_queue_peak"], connections["accept_queue_limit"]) == (101, 100)
    assert connections["listen_overflows"] > 0
    step = record["steps"][0]
    assert step["requests"] == 10_000
    counted = errors_in_record(record)
    assert sum(counted.values()) == step["failures"] > 0
    assert within(RunRecord.model_validate(record))
    # Users whose SYN was dropped, and users who waited too long for a worker.
    assert counted["dial_timeout"] > 0
    assert counted["request_timeout"] > 0
    # It would work on what still waits for minutes, and the next run would wait for that.
    process_of(lab, "java").kill()
    assert lab("up").returncode == 0
