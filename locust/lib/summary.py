"""The run's own figures as JSON: exact counts, percentiles within 0.1 %."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lib.tally import ERROR_CLASSES, Tally

_PERCENTILES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "p99_9": 99.9, "max": 100}


def _latency(tally: Tally, *, failures_as_infinite: bool) -> dict[str, float | None]:
    values = {
        key: tally.percentile_seconds(percentile, failures_as_infinite=failures_as_infinite)
        for key, percentile in _PERCENTILES.items()
    }
    return {key: None if math.isinf(value) else value for key, value in values.items()}


def _phase(name: str, tally: Tally) -> dict[str, Any]:
    good = tally.good.total()
    return {
        "name": name,
        "requests": tally.requests,
        "completed": tally.completed,
        "failures": tally.failures,
        "errors": {name: tally.errors[name] for name in ERROR_CLASSES},
        "latency_seconds": _latency(tally, failures_as_infinite=False),
        "latency_with_failures_seconds": _latency(tally, failures_as_infinite=True),
        "response_bytes_mean": tally.good_bytes / good if good else None,
    }


def write_summary(
    path: str, testid: str, version: str, tallies: Mapping[str, Tally], missed: Sequence[str]
) -> None:
    """Writes it; seconds, null for infinite. Raises OSError."""
    summary = {
        "schema": 1,
        "testid": testid,
        "driver": "locust",
        "versions": {"locust": version},
        "phases": [_phase(name, tally) for name, tally in tallies.items()],
        "thresholds": {"failed": list(missed)},
    }
    Path(path).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
