"""Searches for a capacity as a user starts them, and what they answer."""

import json
from typing import Any

from tests.support.lab import Lab


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
