"""Fortio's JSON result of an HTTP test, and Nighthawk's `--output-format fortio`.

Latencies are in seconds. Fortio (periodic/periodic.go, stats/stats.go) prints the percentiles that
were asked for; others are in its histogram. Nighthawk (output_formatter_impl.cc) writes counts as
strings and, of the answers by status, the good ones alone.
"""

from typing import Annotated

from pydantic import Field

from spikelab.importers.common import (
    OF_ALL_ATTEMPTS,
    Moment,
    Nanoseconds,
    Rate,
    Report,
    ReportError,
    ReportPart,
    Seconds,
    errors_by_status,
    read_part,
)
from spikelab.objectives import QUANTILES
from spikelab.results.files import Count
from spikelab.results.run import Latency

# Fortio's own rule (codeIsOK): 2xx, and the teapot.
_TEAPOT = 418


class _Bucket(ReportPart):
    start: Seconds = Field(alias="Start")
    end: Seconds = Field(alias="End")
    percent: float = Field(alias="Percent", ge=0, le=100)


class _Percentile(ReportPart):
    percentile: float = Field(alias="Percentile")
    value: Seconds = Field(alias="Value")


class _Histogram(ReportPart):
    count: Count = Field(alias="Count")
    min: Seconds = Field(alias="Min")
    max: Seconds = Field(alias="Max")
    mean: Seconds = Field(alias="Avg")
    buckets: list[_Bucket] | None = Field(None, alias="Data")
    percentiles: list[_Percentile] | None = Field(None, alias="Percentiles")


class _FortioDocument(ReportPart):
    started: Moment | None = Field(None, alias="StartTime")
    requested_rate: str | float | None = Field(None, alias="RequestedQPS")
    rate: Rate = Field(alias="ActualQPS")
    duration: Annotated[Nanoseconds, Field(ge=1)] = Field(alias="ActualDuration")
    version: str | None = Field(None, alias="Version")
    url: str = Field("", alias="URL")
    no_keep_alive: bool = Field(False, alias="DisableKeepAlive")
    codes: dict[int, Count] = Field(alias="RetCodes")
    latency: _Histogram = Field(alias="DurationHistogram")


def parse(text: str) -> Report:
    """A result of one HTTP test. Raises ReportError."""
    document = read_part(_FortioDocument, text, "JSON result of an HTTP test with Fortio")
    seconds = document.duration / 1e9
    answered = sum(document.codes.values())
    # Requests of Nighthawk that have no code failed, it does not say how.
    requests = max(answered, round(document.rate * seconds))
    failed = {code: count for code, count in document.codes.items() if not _is_good(code)}
    failures = requests - (answered - sum(failed.values()))
    errors = errors_by_status(failed)
    errors.other += requests - answered
    completed = requests - errors.other
    return Report(
        requests=requests,
        failures=failures,
        completed=completed,
        errors=errors,
        window_seconds=seconds,
        started_rate=requests / seconds,
        achieved_rate=completed / seconds,
        latency_seconds=_latency(document.latency),
        latency_mean_seconds=document.latency.mean,
        started=document.started,
        offered_rate=_offered(document.requested_rate),
        url=document.url,
        policy="close" if document.no_keep_alive else "keep-alive",
        version=document.version,
        warnings=[OF_ALL_ATTEMPTS] if failures else [],
    )


def _is_good(code: int) -> bool:
    return 200 <= code < 300 or code == _TEAPOT


def _offered(requested: str | float | None) -> float | None:
    """None for `max`, Fortio's closed loop."""
    try:
        rate = float(requested or 0)
    except ValueError:
        return None
    if not 0 <= rate <= 1e9:
        raise ReportError(f"RequestedQPS: {requested} is no rate")
    return rate or None


def _latency(histogram: _Histogram) -> Latency:
    stated = {each.percentile: each.value for each in histogram.percentiles or []}
    values: dict[str, float | None] = {"max": histogram.max}
    for key, quantile in QUANTILES.items():
        percent = round(quantile * 100, 6)
        if key != "max":
            values[key] = stated.get(percent, _from_buckets(histogram, percent))
    return Latency(**values)


def _from_buckets(histogram: _Histogram, percent: float) -> float | None:
    """As Fortio's CalcPercentile: linear within a bucket, the lowest value a point of its own."""
    if not histogram.buckets or not histogram.count:
        return None
    before = 100 / histogram.count
    if percent <= before:
        return histogram.min
    for bucket in histogram.buckets:
        if percent <= bucket.percent:
            share = (percent - before) / (bucket.percent - before)
            return bucket.start + share * (bucket.end - bucket.start)
        before = bucket.percent
    return histogram.max
