"""The run's own figures as JSON: exact counts, percentiles within 0.1 %."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lib.events import Region
from lib.slo import Objective
from lib.tally import ERROR_CLASSES, Tally

_PERCENTILES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "p99_9": 99.9, "max": 100}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _milliseconds(seconds: float) -> int | None:
    return round(seconds * 1000) if math.isfinite(seconds) else None


def _latency(tally: Tally, *, failures_as_infinite: bool) -> dict[str, float | None]:
    return {
        key: _finite(
            tally.percentile_seconds(percentile, failures_as_infinite=failures_as_infinite)
        )
        for key, percentile in _PERCENTILES.items()
    }


def _phase(region: Region, tally: Tally, objectives: Sequence[Objective]) -> dict[str, Any]:
    limits = [each for each in objectives if each.percentile is not None]
    good = tally.good.total()
    # The users of a rate are spread on purpose.
    spread = _finite(tally.start_spread_seconds) if region.kind == "users" else None
    return {
        "name": region.phase,
        "started_ms": region.started_ms,
        "started": _milliseconds(tally.started),
        "ended": _milliseconds(tally.ended),
        "start_spread_seconds": spread,
        "requests": tally.requests,
        "completed": tally.completed,
        "dropped": 0,  # a user that is late sends later
        "failures": tally.failures,
        "errors": {name: tally.errors[name] for name in ERROR_CLASSES},
        "slow": {each.text: tally.slow[each.text] for each in limits},
        "late_answers": tally.late_answers if limits and region.kind == "rate" else None,
        "bodies": tally.bodies,
        "latency_seconds": _latency(tally, failures_as_infinite=False),
        "latency_mean_seconds": tally.good_seconds / good if good else None,
        "latency_with_failures_seconds": _latency(tally, failures_as_infinite=True),
        "response_bytes_mean": tally.good_bytes / good if good else None,
    }


def write_summary(
    path: str,
    version: str,
    testid: str,
    regions: Sequence[Region],
    tallies: Mapping[str, Tally],
    objectives: Mapping[str, Sequence[Objective]],
    missed: Sequence[str],
    events_pending: int,
) -> None:
    """Writes it; null for infinite. `regions` are the phases that began, `objectives` are by
    phase. Raises OSError."""
    summary = {
        "schema": 1,
        "testid": testid,
        "driver": "locust",
        "versions": {"locust": version},
        "phases": [
            _phase(each, tallies.get(each.phase, Tally()), objectives.get(each.phase, ()))
            for each in regions
        ],
        "thresholds": {"failed": list(missed)},
        "events_pending": events_pending,
    }
    Path(path).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
