"""Reports of vegeta 12 and older: `vegeta report`, as text or with `-type json`.

Both are printed from one structure (tsenart/vegeta, lib/metrics.go): the text rounds what the JSON
has exactly, and has no times. Its percentiles (a t-digest) are of all attempts.
"""

import re
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import Field

from spikelab.importers.report import (
    OF_ALL_ATTEMPTS,
    Moment,
    Nanoseconds,
    Part,
    Rate,
    Report,
    ReportError,
    errors_by_status,
    read_part,
)
from spikelab.importers.vegeta_text import read_lines
from spikelab.kept import Count
from spikelab.record import Errors, Latency

_MOST_ERRORS = 5
_LONGEST_ERROR = 200
_TEXT_LATENCIES = {"p50": "50", "p90": "90", "p95": "95", "p99": "99", "max": "max"}
# Two digits of a percentage are printed.
_TEXT_ERROR = 0.00005 + 1e-9
_JSON_ERROR = 1e-6
_STATUS = re.compile(r"[1-5][0-9]{2}\b")
_COUNTS_DO_NOT_FIT = "its Status Codes do not fit Requests and Success: these two were taken"
# Go's words for why there was no answer. The first that fits counts.
_NO_ANSWER = (
    ("connection refused", "refused"),
    ("connection reset", "reset"),
    ("i/o timeout", "dial_timeout"),
    ("Client.Timeout", "request_timeout"),
    ("deadline exceeded", "request_timeout"),
)


class _Latencies(Part):
    mean: Nanoseconds
    p50: Nanoseconds = Field(alias="50th")
    p90: Nanoseconds | None = Field(None, alias="90th")
    p95: Nanoseconds = Field(alias="95th")
    p99: Nanoseconds = Field(alias="99th")
    max: Nanoseconds


class _Bytes(Part):
    mean: Rate


class _Document(Part):
    latencies: _Latencies
    bytes_in: _Bytes
    earliest: Moment | None = None
    duration: Nanoseconds
    wait: Nanoseconds
    requests: Count
    rate: Rate
    throughput: Rate | None = None
    success: float = Field(ge=0, le=1)
    status_codes: dict[int, Count]
    errors: list[str] | None = None


@dataclass
class Metrics:
    """What either kind of report holds; `success_error`: how far off rounding puts `success`."""

    requests: int
    attack_seconds: float
    wait_seconds: float
    rate: float
    throughput: float | None
    success: float
    success_error: float
    latency_seconds: Latency
    latency_mean_seconds: float
    bytes_in_mean: float
    codes: dict[int, int]
    errors: list[str] = field(default_factory=list)
    earliest: datetime | None = None


def parse(text: str) -> Report:
    """A text or JSON report. Raises ReportError."""
    return _report(_from_json(text) if text.lstrip().startswith("{") else _from_text(text))


def _from_json(text: str) -> Metrics:
    document = read_part(_Document, text, "JSON report of vegeta")
    latencies = document.latencies.model_dump()
    mean = latencies.pop("mean")
    return Metrics(
        requests=document.requests,
        attack_seconds=document.duration / 1e9,
        wait_seconds=document.wait / 1e9,
        rate=document.rate,
        throughput=document.throughput,
        success=document.success,
        success_error=_JSON_ERROR,
        latency_seconds=Latency(
            **{key: None if value is None else value / 1e9 for key, value in latencies.items()}
        ),
        latency_mean_seconds=mean / 1e9,
        bytes_in_mean=document.bytes_in.mean,
        codes=document.status_codes,
        errors=document.errors or [],
        earliest=document.earliest,
    )


def _from_text(text: str) -> Metrics:
    lines = read_lines(text)
    requests = lines.count("Requests", "total")
    attack_seconds = lines.seconds("Duration", "attack")
    rate = lines.number_if_any("Requests", "rate")
    return Metrics(
        requests=requests,
        attack_seconds=attack_seconds,
        wait_seconds=lines.seconds("Duration", "wait"),
        rate=requests / (attack_seconds or 1) if rate is None else rate,
        throughput=lines.number_if_any("Requests", "throughput"),
        success=lines.share("Success", "ratio"),
        success_error=_TEXT_ERROR,
        latency_seconds=Latency(
            **{
                key: lines.seconds("Latencies", label)
                for key, label in _TEXT_LATENCIES.items()
                if lines.has("Latencies", label)
            }
        ),
        latency_mean_seconds=lines.seconds("Latencies", "mean"),
        bytes_in_mean=lines.number("Bytes In", "mean"),
        codes=lines.codes,
        errors=lines.errors,
    )


def _report(metrics: Metrics) -> Report:
    if not metrics.requests:
        raise ReportError("there is no request in it")
    good = _good(metrics)
    counted = good is not None
    if good is None:
        good = round(metrics.success * metrics.requests)
    seconds = metrics.attack_seconds + metrics.wait_seconds
    throughput = metrics.throughput
    if throughput is None:
        # As newer versions compute it; without a second request there is no rate.
        throughput = good / seconds if metrics.attack_seconds else float(good)
    failures = metrics.requests - good
    return Report(
        requests=metrics.requests,
        failures=failures,
        completed=metrics.requests - (metrics.codes.get(0, 0) if counted else 0),
        errors=_errors(metrics) if counted else Errors(other=failures),
        window_seconds=metrics.attack_seconds,
        drain_seconds=metrics.wait_seconds,
        started_rate=metrics.rate,
        achieved_rate=throughput,
        latency_seconds=metrics.latency_seconds,
        latency_mean_seconds=metrics.latency_mean_seconds,
        response_bytes_mean=metrics.bytes_in_mean,
        started=metrics.earliest,
        warnings=([] if counted else [_COUNTS_DO_NOT_FIT])
        + ([OF_ALL_ATTEMPTS] if failures else []),
    )


def _good(metrics: Metrics) -> int | None:
    """Good answers, counted by status, which is exact; None where that does not fit the rest."""
    good = sum(count for code, count in metrics.codes.items() if 200 <= code < 400)
    fits = (
        sum(metrics.codes.values()) == metrics.requests
        and abs(good / metrics.requests - metrics.success) <= metrics.success_error
    )
    return good if fits else None


def _errors(metrics: Metrics) -> Errors:
    failed = {code: count for code, count in metrics.codes.items() if not 200 <= code < 400}
    unanswered = failed.pop(0, 0)
    errors = errors_by_status(failed)
    reason = _reason(metrics.errors)
    setattr(errors, reason, getattr(errors, reason) + unanswered)
    bodies = [line[:_LONGEST_ERROR] for line in metrics.errors if _STATUS.match(line)]
    errors.bodies = bodies[:_MOST_ERRORS]
    return errors


def _reason(errors: list[str]) -> str:
    """The class of all requests without an answer; `other` where the report names several."""
    reasons = {
        next((name for words, name in _NO_ANSWER if words in line), "other")
        for line in errors
        if not _STATUS.match(line)
    }
    return reasons.pop() if len(reasons) == 1 else "other"
