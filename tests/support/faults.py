"""A short run, and something that goes wrong in the middle of it."""

import subprocess
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import yaml

from tests.support.lab import Lab, wait_until

T = TypeVar("T")


def phase(name: str, seconds: float, rate: int = 100) -> dict[str, Any]:
    """A phase at a fixed rate."""
    return {"name": name, "kind": "rate", "value": rate, "duration": f"{seconds}s"}


def plan(folder: Path, **changes: Any) -> str:
    """A rate of 100/s on a fast answer for 30 s, or what of it is changed; returns its file."""
    data = {
        "name": "fault",
        "about": "a rate while something goes wrong",
        "script": {"k6": "steady", "locust": "hello"},
        "request": {"path": "/hello?ms=5", "timeout": "3s"},
        "phases": [phase("before", 5), phase("during", 25)],
        # What 100 requests can show, sent by a driver that is late on a busy machine.
        "slo": ["success >= 95%", "p95 < 2.5s"],
        **changes,
    }
    path = folder / "fault.yaml"
    path.write_text(yaml.safe_dump(data))
    return str(path)


def short_of_cpu(step: dict[str, Any], rate: int) -> bool:
    """Whether the driver was, or was behind its own schedule: that decides nothing."""
    behind = step["started_rate"] < 0.98 * rate and not step["failures"]
    return bool(step["generator"]["limited"]) or behind


def assert_unharmed(record: dict[str, Any], rate: int) -> None:
    """Load and answers are what they are without a fault, by the driver's own count."""
    assert record["valid"]
    for step in record["steps"]:
        assert step["failures"] == 0
        assert (step["verdict"], step["dropped"]) == ("pass", 0) or short_of_cpu(step, rate)


def assert_withheld(record: dict[str, Any]) -> None:
    """The run has no verdict, and says why."""
    assert (record["valid"], record["verdict"]) == (False, "inconclusive")
    assert record["reasons"]


def said(record: dict[str, Any]) -> str:
    """What a run says of itself."""
    return "; ".join([*record["reasons"], *record["warnings"]])


def error_line(result: subprocess.CompletedProcess[str]) -> str:
    """What a command that failed says at its end: one line, and never a traceback."""
    assert "Traceback" not in result.stdout + result.stderr, result.stderr
    line = result.stderr.strip().splitlines()[-1]
    assert line.startswith("lab: "), result.stderr
    return line.removeprefix("lab: ")


def meanwhile(
    lab: Lab, work: Callable[[], T], phase: str = "during", known: int | None = None
) -> Future[T]:
    """Does something once the phase has begun. Await the result: a fault that never happened must
    fail the test. `known`: records before the run; those of now."""
    before = len(lab.records()) if known is None else known

    def wait_and_work() -> T:
        wait_until(lambda: len(lab.records()) > before, 90, "the run has begun")
        testid = lab.records()[-1]["testid"]
        wait_until(lambda: _begun(lab, testid, phase), 60, f"{phase} has begun")
        return work()

    return ThreadPoolExecutor(1).submit(wait_and_work)


def _begun(lab: Lab, testid: str, phase: str) -> bool:
    rows = lab.influxdb.query(f"SELECT * FROM events WHERE testid = '{testid}'")
    return phase in [row["phase"] for row in rows]
