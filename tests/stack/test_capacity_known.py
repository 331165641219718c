"""Capacity searches against servers whose capacity is known."""

from pathlib import Path

import pytest

from tests.stack.searches import ends, search, within_5_percent
from tests.support.lab import Lab
from tests.support.servers.known_capacity import known_capacity
from tests.support.servers.known_plan import POISSON, RandomServer, plan

# Beside other tests the driver is late, which decides nothing.
pytestmark = pytest.mark.alone


def test_the_capacity_of_a_server_with_fixed_service_times_is_found_within_5_percent(
    lab: Lab, tmp_path: Path
) -> None:
    with known_capacity("--workers", "8", "--service", "0.02") as url:
        known = plan(tmp_path, url, "p95 < 120ms", 360, growth=1.2, confirmations=0)
        answer = search(lab, known)
    within_5_percent(answer, 400)
    assert answer["limited_by"]


@pytest.mark.slow
def test_the_capacity_of_a_server_with_random_service_times_is_found(
    lab: Lab, tmp_path: Path
) -> None:
    # One seed: bench/capacity.py asks of ten that the interval contains it.
    server = RandomServer(workers=16, service_seconds=0.032, limit_seconds=0.144)
    capacity = server.capacity()
    with known_capacity(*server.arguments) as url:
        known = plan(
            tmp_path,
            url,
            server.objective,
            round(0.96 * capacity),
            duration="30s",
            growth=1.1,
            precision="7%",
            confirmations=0,
            keys=POISSON,
        )
        held, failed = ends(search(lab, known))
    assert held >= 0.9 * capacity and failed <= 1.1 * capacity, (held, failed, capacity)


@pytest.mark.slow
def test_a_server_that_becomes_slower_gives_no_capacity(lab: Lab, tmp_path: Path) -> None:
    with known_capacity("--workers", "6", "--service", "0.01", "--times", "drifting") as url:
        known = plan(tmp_path, url, "p95 < 80ms", 300, duration="3s")
        answer = search(lab, known, exit_code=3)
    assert answer["outcome"] == "inconclusive"
    assert "drifts or varies" in answer["reason"]
