"""The run's own figures as JSON: exact counts, response times within 0.1 %."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lib.events import Region
from lib.slo import Objective
from lib.tally import ERROR_CLASSES, Tally, seconds_at
from lib.timing import PARTS

_LATENESS = {"p50": 0.5, "p99": 0.99, "max": 1.0}

_FORM = 2  # of the file; 1 had percentiles, of times from a request's start


def _steps(first: float, last: float, step: float) -> list[float]:
    return [round(first + i * step, 6) for i in range(round((last - first) / step) + 1)]


# The lab's (spikelab/statistics/distribution.py): finer the rarer such answers are.
RANKS = (
    *_steps(0.0, 0.99, 0.005),
    *_steps(0.9905, 0.999, 0.0005),
    *_steps(0.99905, 0.9999, 0.00005),
    1.0,
)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _milliseconds(seconds: float) -> int | None:
    return round(seconds * 1000) if math.isfinite(seconds) else None


def _latency(tally: Tally) -> dict[str, Any]:
    """Response times of good answers: `seconds[i]` is what the share `ranks[i]` does not exceed."""
    count = tally.good.total()
    if not count:
        return {"count": 0, "ranks": [], "seconds": []}
    last = max(1, count - 1)
    ranks = RANKS if len(RANKS) <= last else [i / last for i in range(last)] + [1.0]
    places = [rank * (count - 1) for rank in ranks]
    # From 1; an answer between two others is taken to be in a line with them.
    below = tally.good_seconds_at([math.floor(place) + 1 for place in places])
    above = tally.good_seconds_at([math.ceil(place) + 1 for place in places])
    between = zip(places, below, above, strict=True)
    seconds = [round(low + place % 1 * (high - low), 9) for place, low, high in between]
    return {"count": count, "ranks": list(ranks), "seconds": seconds}


def _parts(tally: Tally) -> dict[str, float] | None:
    """Means that add up to the mean response time; None where a script sent requests by itself."""
    count = tally.good.total()
    if not count or tally.timed < count:
        return None
    return {name: spent / count for name, spent in zip(PARTS, tally.parts, strict=True)}


def _lateness(tally: Tally) -> dict[str, float] | None:
    """The greater of both, of requests that were due and of the driver's clock."""
    kinds = [times for times in (tally.late_starts, tally.late_ticks) if times]
    found = [
        seconds_at(times, [math.ceil(share * times.total()) for share in _LATENESS.values()])
        for times in kinds
    ]
    greater = (max(each) for each in zip(*found, strict=True))
    return dict(zip(_LATENESS, greater, strict=True)) if found else None


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
        "completed_in_window": tally.completed - tally.completed_after,
        "dropped": 0,  # a user that is late sends later
        "failures": tally.failures,
        "errors": {name: tally.errors[name] for name in ERROR_CLASSES},
        "slow": {each.text: tally.slow[each.text] for each in limits},
        "late_answers": tally.late_answers if limits and region.kind == "rate" else None,
        "bodies": tally.bodies,
        "latency": _latency(tally),
        "latency_mean_seconds": tally.good_seconds / good if good else None,
        "latency_parts_seconds": _parts(tally),
        "lateness": _lateness(tally),
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
        "schema": _FORM,
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
