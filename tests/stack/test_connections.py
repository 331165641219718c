"""Connections that the real target holds: predicted from settings, counted at the server."""

import re
import subprocess
import sys

import pytest

from spikelab import paths
from spikelab.machine import sysctl
from tests.support.lab import Lab

pytestmark = pytest.mark.crowded

_SETTINGS = 12


@pytest.mark.slow
def test_predicted_connections_are_those_that_the_server_holds(lab: Lab) -> None:
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
