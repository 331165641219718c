"""k6's end-of-test summary as JSON, in each of its three forms.

`--summary-export` (metrics as plain figures), the object that `handleSummary()` gets (figures under
`values`), and either with `--new-machine-readable-summary` (a list of metrics). Times are in
milliseconds, percentiles exact.
"""

import re
from datetime import datetime, timedelta
from typing import Any

from pydantic import AliasChoices, Field

from spikelab.importers.common import (
    OF_ALL_ATTEMPTS,
    Milliseconds,
    Moment,
    Rate,
    Report,
    ReportError,
    ReportPart,
    Seconds,
    latency_in,
    read_part,
)
from spikelab.results.files import Count
from spikelab.results.run import Errors

_WHAT = "JSON summary of k6"
_NEEDED = ("http_reqs", "http_req_failed", "http_req_duration")
_PERCENTILE = re.compile(r"p\(?([0-9.]+)\)?")


class _Counter(ReportPart):
    count: Count
    rate: Rate | None = None


class _Failed(ReportPart):
    """A rate of k6: failed requests are those for which it was true."""

    passes: Count | None = None
    matches: Count | None = None


class _Trend(ReportPart):
    avg: Milliseconds | None = None
    p50: Milliseconds | None = Field(None, alias="med")
    p90: Milliseconds | None = None
    p95: Milliseconds | None = None
    p99: Milliseconds | None = None
    p99_9: Milliseconds | None = None
    max: Milliseconds | None = None


class _Metrics(ReportPart):
    requests: _Counter = Field(alias="http_reqs")
    failed: _Failed = Field(alias="http_req_failed")
    dropped: _Counter = Field(_Counter(count=0), alias="dropped_iterations")
    of_all: _Trend = Field(alias="http_req_duration")
    of_good: _Trend | None = Field(None, alias="http_req_duration{expected_response:true}")


class _State(ReportPart):
    run_ms: Milliseconds = Field(alias="testRunDurationMs")


class _Config(ReportPart):
    duration: Seconds


class _Metadata(ReportPart):
    """k6 2.2 writes what its own schema calls generatedAt and k6Version with underscores."""

    generated_at: Moment | None = Field(
        default=None, validation_alias=AliasChoices("generated_at", "generatedAt")
    )
    k6_version: str | None = Field(
        default=None, validation_alias=AliasChoices("k6_version", "k6Version")
    )


class _Results(ReportPart):
    metrics: list[dict[str, Any]]


class _K6Document(ReportPart):
    metrics: dict[str, dict[str, Any]] | None = None
    results: _Results | None = None
    state: _State | None = None
    config: _Config | None = None
    metadata: _Metadata = _Metadata()


def parse(text: str) -> Report:
    """A summary of a test that made HTTP requests. Raises ReportError."""
    document = read_part(_K6Document, text, _WHAT)
    metrics = _metrics(document)
    failures = metrics.failed.passes if metrics.failed.matches is None else metrics.failed.matches
    if failures is None:
        raise ReportError("http_req_failed has no count of failed requests")
    requests = metrics.requests.count
    good = max(0, requests - failures)
    seconds = _seconds(document, metrics.requests)
    # Without a good answer k6 states that trend as 0.
    trend = metrics.of_good if metrics.of_good and good else metrics.of_all
    return Report(
        requests=requests,
        failures=failures,
        completed=good,
        dropped=metrics.dropped.count,
        errors=Errors(other=failures),
        window_seconds=seconds,
        started_rate=requests / seconds,
        achieved_rate=good / seconds,
        latency_seconds=latency_in(trend, 1000),
        latency_mean_seconds=None if trend.avg is None else trend.avg / 1000,
        started=_started(document.metadata, seconds),
        version=document.metadata.k6_version,
        warnings=_warnings(failures, trend is metrics.of_all),
    )


def _metrics(document: _K6Document) -> _Metrics:
    """The metrics by name, their figures as in a `--summary-export`."""
    if document.results is not None:
        found = {str(each.get("name")): each for each in document.results.metrics}
    else:
        found = document.metrics or {}
    flat = {name: _figures(metric) for name, metric in found.items()}
    for name in _NEEDED:
        if name not in flat:
            raise ReportError(
                f"it has no metric {name}: the lab takes summaries of k6 0.31 or newer, of tests "
                "that make HTTP requests"
            )
    return read_part(_Metrics, flat, _WHAT)


def _figures(metric: dict[str, Any]) -> dict[str, Any]:
    values = metric.get("values", metric)
    if not isinstance(values, dict):
        raise ReportError(f"this is no {_WHAT}: a metric's values are no figures")
    return {_key(name): value for name, value in values.items()}


def _key(name: str) -> str:
    """`p(99.9)` and `p99.9` as the record calls it; other names as they are."""
    match = _PERCENTILE.fullmatch(name)
    return "p" + match[1].replace(".", "_") if match else name


def _seconds(document: _K6Document, requests: _Counter) -> float:
    """How long the test took, set-up and the last answers included."""
    seconds = 0.0
    if document.config:
        seconds = document.config.duration
    elif document.state:
        seconds = document.state.run_ms / 1000
    elif requests.rate:
        seconds = requests.count / requests.rate
    if seconds <= 0:
        raise ReportError("it does not say how long the test took (http_reqs has no rate)")
    return seconds


def _started(metadata: _Metadata, seconds: float) -> datetime | None:
    """The summary is made when the test has ended."""
    ended = metadata.generated_at
    return None if ended is None else ended - timedelta(seconds=seconds)


def _warnings(failures: int, of_all: bool) -> list[str]:
    if not failures:
        return []
    unknown = "k6's summary does not class failures: all are `other`, none counts as completed"
    return [unknown, OF_ALL_ATTEMPTS] if of_all else [unknown]
