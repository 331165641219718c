"""Locust's statistics as CSV: `NAME_stats.csv`, which `--csv NAME` writes.

The row `Aggregated` is taken. Locust rounds each response time before it counts it
(locust/stats.py, `bucket_response_time`), so a percentile is off by up to 0.5 ms below 100 ms and
by up to 5 % above; mean and maximum are exact. Percentiles are of all attempts, failed ones too.
"""

import csv
from io import StringIO

from pydantic import Field

from spikelab.importers.common import (
    OF_ALL_ATTEMPTS,
    Milliseconds,
    Rate,
    Report,
    ReportError,
    ReportPart,
    latency_in,
    read_part,
)
from spikelab.results.files import Count
from spikelab.results.run import Errors

COMPANIONS = ("_stats_history.csv", "_failures.csv", "_exceptions.csv")
_WHAT = "statistics CSV of Locust"
_ROUNDED = (
    "Locust rounds response times to whole milliseconds, from 100 ms on to two digits: "
    "a percentile is off by up to 0.5 ms, from 100 ms on by up to 5 %"
)


class _Row(ReportPart):
    requests: Count = Field(alias="Request Count")
    failures: Count = Field(alias="Failure Count")
    mean: Milliseconds = Field(alias="Average Response Time")
    max: Milliseconds = Field(alias="Max Response Time")
    bytes_mean: Rate = Field(alias="Average Content Size")
    rate: Rate = Field(alias="Requests/s")
    p50: Milliseconds | None = Field(None, alias="50%")
    p90: Milliseconds | None = Field(None, alias="90%")
    p95: Milliseconds | None = Field(None, alias="95%")
    p99: Milliseconds | None = Field(None, alias="99%")
    p99_9: Milliseconds | None = Field(None, alias="99.9%")


def parse(text: str) -> Report:
    """The aggregated row. Raises ReportError."""
    row = read_part(_Row, _aggregated(text), _WHAT)
    if row.requests and not row.rate:
        raise ReportError("Requests/s is 0: the test was too short to have a rate")
    good = max(0, row.requests - row.failures)
    # A closed loop's clock stops with its last answer: Locust divides by the time until then.
    seconds = row.requests / row.rate if row.rate else 0.0
    return Report(
        requests=row.requests,
        failures=row.failures,
        completed=good,
        errors=Errors(other=row.failures),
        window_seconds=seconds,
        started_rate=row.rate,
        achieved_rate=good / seconds if seconds else 0.0,
        latency_seconds=latency_in(row, 1000),
        latency_mean_seconds=row.mean / 1000,
        response_bytes_mean=row.bytes_mean,
        warnings=[_ROUNDED] + (_of_failures() if row.failures else []),
    )


def _of_failures() -> list[str]:
    return [
        "these statistics do not class failures: all are `other`, none counts as completed",
        OF_ALL_ATTEMPTS,
    ]


def _aggregated(text: str) -> dict[str, str]:
    """The last row by column; what Locust does not know (`N/A`) is left out."""
    try:
        rows = list(csv.DictReader(StringIO(text, newline=""), restval="", strict=True))
    except csv.Error as error:
        raise ReportError(f"this is no {_WHAT}: {error}") from error
    for row in rows:
        # A row that is longer than the header has its rest under None.
        if row.get("Name") == "Aggregated" and None not in row:
            return {name: value for name, value in row.items() if value != "N/A"}
    raise ReportError(f"this is no {_WHAT}: it has no row 'Aggregated' (--csv writes *_stats.csv)")
