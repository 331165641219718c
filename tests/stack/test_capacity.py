"""Capacity searches against servers whose capacity is known, and against the real target."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.servers.known_capacity import known_capacity
from tests.servers.known_plan import JITTER, RandomServer, plan
from tests.stack.conftest import Lab

pytestmark = pytest.mark.alone


def search(lab: Lab, *arguments: str, exit_code: int = 0) -> dict[str, Any]:
    """`./lab capacity …`: its answer, after its exit code was checked."""
    file = lab.home / "capacity.json"
    file.unlink(missing_ok=True)
    result = lab("capacity", *arguments, "--fresh", "--json", str(file), timeout=600)
    assert result.returncode == exit_code, result.stdout + result.stderr
    answer: dict[str, Any] = json.loads(file.read_text())["answer"]
    return answer


def ends(answer: dict[str, Any]) -> tuple[float, float]:
    assert answer["outcome"] == "found", answer
    return answer["highest_pass"], answer["lowest_fail"]


def within_5_percent(answer: dict[str, Any], capacity: float) -> None:
    held, failed = ends(answer)
    assert held >= 0.95 * capacity and failed <= 1.05 * capacity, (held, failed, capacity)


def test_fixed_service_times(lab: Lab, tmp_path: Path) -> None:
    with known_capacity("--workers", "8", "--service", "0.02") as url:
        known = plan(tmp_path, url, "p95 < 120ms", 360, growth=1.2, confirmations=0)
        answer = search(lab, known)
    within_5_percent(answer, 400)
    assert answer["limited_by"]


@pytest.mark.slow
def test_random_service_times(lab: Lab, tmp_path: Path) -> None:
    # bench/capacity.py takes the time that 5 % need: a quarter of the rate, steps of a minute.
    server = RandomServer(workers=16, service_seconds=0.016, limit_seconds=0.072)
    with known_capacity(*server.arguments) as url:
        known = plan(
            tmp_path,
            url,
            server.objective,
            800,
            duration="15s",
            growth=1.1,
            confirmations=0,
            keys=JITTER,
        )
        held, failed = ends(search(lab, known))
    capacity = server.capacity()
    assert held >= 0.9 * capacity and failed <= 1.1 * capacity, (held, failed, capacity)


@pytest.mark.slow
def test_a_drift_gives_no_number(lab: Lab, tmp_path: Path) -> None:
    with known_capacity("--workers", "6", "--service", "0.01", "--times", "drifting") as url:
        answer = search(lab, plan(tmp_path, url, "p95 < 80ms", 300, confirmations=2), exit_code=3)
    assert answer["outcome"] == "inconclusive"
    assert "drifts or varies" in answer["reason"]


@pytest.mark.slow
@pytest.mark.parametrize(("threads", "first"), [(20, 250), (40, 500)])
def test_capacity_of_the_target_doubles_with_its_threads(
    lab: Lab, threads: int, first: float
) -> None:
    answer = search(
        lab,
        "capacity",
        *("--preset", "brief", "--set", f"first={first}", "--set", "recovery=12s"),
        *("--target-set", f"TOMCAT_MAX_THREADS={threads}"),
    )
    within_5_percent(answer, threads / 0.05)
    assert answer["overload"]["outcome"] == "queues"
    assert all(step["resources"]["worker_threads_share"] > 0.4 for step in answer["steps"])


@pytest.mark.slow
def test_a_bounded_queue_sheds_an_overload(lab: Lab) -> None:
    # The only rate that is allowed: the overload follows at once.
    only = [f"--set={name}=320" for name in ("first", "lowest", "highest")]
    answer = search(
        lab,
        *("capacity", "--preset", "brief", *only, "--set", "recovery=12s"),
        *("--target-set", "TOMCAT_MAX_QUEUE_CAPACITY=20"),
        exit_code=3,
    )
    assert (answer["outcome"], answer["highest_pass"]) == ("at least", 320)
    overload = answer["overload"]
    assert overload["outcome"] == "sheds"
    assert overload["goodput"] > 0.8 * 400
    assert overload["recovery_seconds"] <= 5
