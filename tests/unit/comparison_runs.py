"""Runs in memory for the tests of comparisons."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from spikelab.comparison.arms import Arm, arm_of_experiment
from spikelab.record import Connections, Errors, Host, Latency, RunRecord, Step, TargetRecord

START = datetime(2026, 11, 21, 1, 2, 3, tzinfo=UTC)
_NUMBERS = iter(range(1, 100_000))


def latency(seconds: float | None) -> Latency:
    return Latency(**dict.fromkeys(Latency.model_fields, seconds))


def step(p95: float | None = 0.1, **changes: Any) -> Step:
    figures: dict[str, Any] = {
        "name": "steady",
        "phase": "steady",
        "started": START,
        "ended": START + timedelta(seconds=2),
        "offered_rate": 100.0,
        "started_rate": 100.0,
        "achieved_rate": 100.0,
        "goodput": 100.0,
        "requests": 1000,
        "completed": 1000,
        "dropped": 0,
        "failures": 0,
        "errors": Errors(),
        "response_bytes_mean": None,
        "latency_seconds": latency(p95),
        "latency_mean_seconds": p95,
        "latency_with_failures_seconds": latency(p95),
        "drain_seconds": 0.0,
        "verdict": "pass",
    }
    return Step(**{**figures, **changes})


def record(*steps: Step, **changes: Any) -> RunRecord:
    number = next(_NUMBERS)
    figures: dict[str, Any] = {
        "testid": f"20261121T010203Z-mine-{number:04x}",
        "plan": "mine",
        "driver": "k6",
        "started": START + timedelta(seconds=number),
        "ended": START + timedelta(seconds=number + 2),
        "valid": True,
        "verdict": "pass",
        "target": TargetRecord(
            url="http://127.0.0.1:8080", settings={}, effective={}, runtime="host"
        ),
        "connections": Connections(policy="keep-alive"),
        "host": Host(kernel="6", cpus=2, limits={}),
        "steps": list(steps),
    }
    return RunRecord(**{**figures, **changes})


def runs(figures: Sequence[float | None], variant: str, **values: Any) -> list[RunRecord]:
    """One run a repeat, with these latencies; null: failures reach every percentile."""
    return [
        record(
            step(p95, variant=variant, repeat=repeat, failures=0 if p95 else 1000),
            values=values,
        )
        for repeat, p95 in enumerate(figures, 1)
    ]


def arms(a: Sequence[RunRecord], b: Sequence[RunRecord], order: str = "abba") -> tuple[Arm, Arm]:
    """Two variants of one experiment, `a` and `b`."""
    both = [*a, *b]
    return (
        arm_of_experiment("mine-1", both, "a", order),
        arm_of_experiment("mine-1", both, "b", order),
    )
