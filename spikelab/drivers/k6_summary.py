"""k6's own end-of-test summary (`--summary-export`) as figures of the plan's phases.

k6 states times in milliseconds, percentiles exactly, and a sub-metric as `name{tag:value,…}`.
k6/lib/attempt.js says what the metrics that are not k6's own count.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from spikelab.drivers.summary import PhaseSummary, from_epoch_ms
from spikelab.errors import LabError
from spikelab.record import ERROR_CLASSES, Errors, Latency, write_json

_PERCENTILES = {
    "p50": "med",
    "p90": "p(90)",
    "p95": "p(95)",
    "p99": "p(99)",
    "p99_9": "p(99.9)",
    "max": "max",
}
# A failed attempt counts as 1e10 ms in latency_with_failures, and k6 interpolates: a percentile
# between that and the slowest answer is infinite as well. No request may take an hour (plan.py).
_INFINITE_MS = 3.6e6

Metrics = dict[str, dict[str, Any]]


def read_summary(path: Path, phases: Mapping[str, float]) -> list[PhaseSummary]:
    """The figures of the phases, given with their start in seconds.

    Raises LabError when k6 left no summary or a script without ours.
    """
    try:
        document = json.loads(path.read_bytes())
        epoch_ms = float(document["setup_data"]["started_ms"])
        return [
            _phase(document["metrics"], name, epoch_ms, start * 1000)
            for name, start in phases.items()
        ]
    except FileNotFoundError as error:
        raise LabError("k6 ended without a summary") from error
    except (ValueError, KeyError, TypeError) as error:
        raise LabError(f"k6's summary {path.name} lacks what the lab needs: {error}") from error


def remove_requests(path: Path) -> None:
    """Takes out what setup() handed to the users: their headers may hold a token."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        document = json.loads(path.read_bytes())
        if document["setup_data"].pop("requests", None):
            write_json(path, document)


def _phase(metrics: Metrics, name: str, epoch_ms: float, begun_ms: float) -> PhaseSummary:
    def of(metric: str, tags: str = "") -> dict[str, Any]:
        return metrics[f"{metric}{{scenario:{name}{tags}}}"]

    requests = int(of("attempts")["count"])
    # A gauge that nobody has set reads 0.
    nothing = {"min": begun_ms, "max": begun_ms}
    started, ended = (of("attempt_started"), of("attempt_ended")) if requests else (nothing,) * 2
    good = int(of("success")["passes"])
    answers = of("http_req_duration", ",expected_response:true")
    errors = _errors(requests - good, {c: of("failures", f",class:{c}") for c in ERROR_CLASSES})
    return PhaseSummary(
        name=name,
        begun=from_epoch_ms(epoch_ms + begun_ms),
        started=from_epoch_ms(epoch_ms + started["min"]),
        ended=from_epoch_ms(epoch_ms + max(ended["max"], started["max"])),
        requests=requests,
        completed=good + errors.http_4xx + errors.http_5xx,
        failures=requests - good,
        dropped=int(of("dropped_iterations")["count"]),
        errors=errors,
        slow=_slow(metrics, name),
        late_answers=_late_answers(metrics, name),
        latency_seconds=_latency(answers),
        latency_mean_seconds=answers["avg"] / 1000 if answers["count"] else None,
        latency_with_failures_seconds=_latency(of("latency_with_failures")),
        start_spread_seconds=(started["max"] - started["min"]) / 1000,
        response_bytes_mean=of("answer_bytes")["avg"] if of("answer_bytes")["count"] else None,
    )


def _errors(failures: int, by_class: Metrics) -> Errors:
    """An attempt that was cut off before it could be counted is a failure of no known class."""
    counts = {name: int(metric["count"]) for name, metric in by_class.items()}
    counts["other"] += failures - sum(counts.values())
    return Errors.model_validate(counts)


def _slow(metrics: Metrics, name: str) -> dict[str, int]:
    prefix = f"slow{{scenario:{name},objective:"
    return {
        key.removeprefix(prefix).removesuffix("}"): int(metric["count"])
        for key, metric in metrics.items()
        if key.startswith(prefix)
    }


def _late_answers(metrics: Metrics, name: str) -> int | None:
    metric = metrics.get(f"late_answers{{scenario:{name}}}")
    return int(metric["count"]) if metric else None


def _latency(trend: dict[str, Any]) -> Latency:
    if not trend["count"]:
        return Latency()
    values = {key: float(trend[name]) for key, name in _PERCENTILES.items()}
    return Latency.model_validate(
        {key: None if ms >= _INFINITE_MS else round(ms / 1000, 9) for key, ms in values.items()}
    )
