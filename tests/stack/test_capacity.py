"""Capacity searches against servers whose capacity is known, and against the real target."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from scipy.optimize import brentq

from tests.servers.known_capacity import known_capacity
from tests.stack.conftest import Lab

_PLAN = """
name: known
about: A server whose capacity is known
script: steady
parameters:
  rate: {{about: requests a second, default: 100.0}}
target: {{url: "{url}"}}
request: {{path: /, timeout: 5s}}
phases:
  - {{name: warm-up, kind: rate, value: "${{rate}}", duration: 1s, judged: false{keys}}}
  - {{name: step, kind: rate, value: "${{rate}}", duration: {duration}{keys}}}
slo: [success >= 99%, {objective}]
capacity:
  {{first: {first}, lowest: 50, highest: 3000, growth: {growth}, confirmations: {confirmations}}}
"""


def search(lab: Lab, *arguments: str, exit_code: int = 0) -> dict[str, Any]:
    """`./lab capacity …`: its answer, after its exit code was checked."""
    file = lab.home / "capacity.json"
    file.unlink(missing_ok=True)
    result = lab("capacity", *arguments, "--fresh", "--json", str(file), timeout=600)
    assert result.returncode == exit_code, result.stdout + result.stderr
    answer: dict[str, Any] = json.loads(file.read_text())["answer"]
    return answer


def plan(
    folder: Path,
    url: str,
    objective: str,
    first: float,
    *,
    duration: str = "5s",
    growth: float = 1.5,
    confirmations: int = 1,
    keys: str = "",
) -> str:
    path = folder / "known.yaml"
    path.write_text(
        _PLAN.format(
            url=url,
            objective=objective,
            first=first,
            duration=duration,
            growth=growth,
            confirmations=confirmations,
            keys=keys,
        )
    )
    return str(path)


def ends(answer: dict[str, Any]) -> tuple[float, float]:
    assert answer["outcome"] == "found", answer
    return answer["highest_pass"], answer["lowest_fail"]


def within_5_percent(answer: dict[str, Any], capacity: float) -> None:
    held, failed = ends(answer)
    assert held >= 0.95 * capacity and failed <= 1.05 * capacity, (held, failed, capacity)


def slow_share(rate: float, workers: int, service: float, limit: float) -> float:
    """Of M/M/c: answers that take longer than the limit, by Erlang's C formula (Kleinrock, Queueing
    Systems 1 (1975), ch. 3); the wait of those that wait is exponential, and so is the service."""
    load, served, spare = rate * service, 1 / service, workers / service - rate
    blocked = 1.0
    for worker in range(1, workers + 1):
        blocked = load * blocked / (worker + load * blocked)
    waits = blocked / (1 - load / workers * (1 - blocked))
    both = (served * math.exp(-spare * limit) - spare * math.exp(-served * limit)) / (
        served - spare
    )
    return (1 - waits) * math.exp(-served * limit) + waits * both


def test_fixed_service_times(lab: Lab, tmp_path: Path) -> None:
    with known_capacity("--workers", "8", "--service", "0.02") as url:
        known = plan(tmp_path, url, "p95 < 120ms", 360, growth=1.2, confirmations=0)
        answer = search(lab, known)
    within_5_percent(answer, 400)
    assert answer["limited_by"]


@pytest.mark.slow
def test_random_service_times(lab: Lab, tmp_path: Path) -> None:
    workers, service, limit = 4, 0.004, 0.04
    most = workers / service
    capacity = brentq(
        lambda rate: slow_share(rate, workers, service, limit) - 0.05, most / 10, 0.999 * most
    )
    with known_capacity(
        "--workers", str(workers), "--service", str(service), "--times", "exponential"
    ) as url:
        known = plan(
            tmp_path, url, "p95 < 40ms", 800, duration="10s", growth=1.3, keys=", jitter: 1s"
        )
        held, failed = ends(search(lab, known))
    # A rate that cannot be decided may lie between the ends: they are up to 10 % apart.
    assert math.sqrt(held * failed) == pytest.approx(capacity, rel=0.05), (held, failed)
    assert held / 1.05 <= capacity <= failed * 1.05


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
