"""Steps, run records and drivers' summaries in memory: a plain one, of which a test changes what it
is about."""

from datetime import UTC, datetime, timedelta
from typing import Any

from spikelab.drivers.base import PhaseSummary
from spikelab.results.run import Connections, Errors, Host, Latency, RunRecord, Step, TargetRecord
from spikelab.statistics.distribution import Distribution

START = datetime(2026, 11, 21, 1, 2, 3, tzinfo=UTC)


def plain_step(seconds: float = 10.0, rate: float | None = 100.0, **changes: Any) -> Step:
    """A judged step that began at START, at its rate and without a failure; it has no latencies."""
    requests = int(seconds * (rate or 100))
    figures: dict[str, Any] = {
        "name": "steady",
        "phase": "steady",
        "started": START,
        "ended": START + timedelta(seconds=seconds),
        "offered_rate": rate,
        "started_rate": rate,
        "achieved_rate": rate,
        "goodput": rate,
        "requests": requests,
        "completed": requests,
        "dropped": 0,
        "failures": 0,
        "errors": Errors(),
        "response_bytes_mean": None,
        "latency_seconds": Latency(),
        "latency_with_failures_seconds": Latency(),
        "drain_seconds": 0.0,
        "verdict": "pass",
    }
    return Step(**{**figures, **changes})


def plain_record(*steps: Step, **changes: Any) -> RunRecord:
    """A valid run of the plan `mine` by k6, on the lab's own target, with these steps."""
    figures: dict[str, Any] = {
        "testid": "20261121T010203Z-mine-0a1b",
        "plan": "mine",
        "driver": "k6",
        "started": START,
        "ended": START + timedelta(seconds=60),
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


def plain_summary(seconds: float = 10.0, **changes: Any) -> PhaseSummary:
    """What a driver says of the phase `one`, which began at START: 1,000 good answers."""
    return PhaseSummary(
        **{
            "name": "one",
            "begun": START,
            "started": START,
            "ended": START + timedelta(seconds=seconds),
            "requests": 1000,
            "completed": 1000,
            "completed_in_window": None,
            "failures": 0,
            "dropped": 0,
            "errors": Errors(),
            "slow": {},
            "late_answers": 0,
            "latency": Distribution(),
            "latency_mean_seconds": None,
            "latency_parts_seconds": None,
            "lateness": None,
            "start_spread_seconds": None,
            "response_bytes_mean": None,
            **changes,
        }
    )
