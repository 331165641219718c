"""Reports of vegeta 12 and older: `vegeta report`, as text or with `-type json`.

Both are printed from one structure (tsenart/vegeta, lib/metrics.go): the text rounds what the JSON
has exactly, and has no times. Its percentiles (a t-digest) are of all attempts. Lines of the text
are `Name [label, …] value, …`; versions differ in the labels, so a value is found by its label and
never by its place.
"""

import re
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import Field

from spikelab.importers.common import (
    OF_ALL_ATTEMPTS,
    Moment,
    Nanoseconds,
    Rate,
    Report,
    ReportError,
    ReportPart,
    errors_by_status,
    latency_in,
    read_part,
)
from spikelab.results.files import Count
from spikelab.results.run import Errors, Latency
from spikelab.units import parse_go_duration

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


class _Latencies(ReportPart):
    mean: Nanoseconds
    p50: Nanoseconds = Field(alias="50th")
    p90: Nanoseconds | None = Field(None, alias="90th")
    p95: Nanoseconds = Field(alias="95th")
    p99: Nanoseconds = Field(alias="99th")
    max: Nanoseconds


class _Bytes(ReportPart):
    mean: Rate


class _VegetaDocument(ReportPart):
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
    document = read_part(_VegetaDocument, text, "JSON report of vegeta")
    return Metrics(
        requests=document.requests,
        attack_seconds=document.duration / 1e9,
        wait_seconds=document.wait / 1e9,
        rate=document.rate,
        throughput=document.throughput,
        success=document.success,
        success_error=_JSON_ERROR,
        latency_seconds=latency_in(document.latencies, 1e9),
        latency_mean_seconds=document.latencies.mean / 1e9,
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


_LINE = re.compile(
    r"(Requests|Duration|Latencies|Bytes In|Bytes Out|Success|Status Codes)\s+\[([^\]]*)\](.*)"
)
_COUNT = re.compile(r"[0-9]{1,15}")
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,20})?")
_CODE = re.compile(r"([0-9]{1,3}):([0-9]{1,15})")
_ERRORS = "Error Set:"


@dataclass
class Lines:
    """Values by line and label. Each reader raises ReportError naming the line."""

    values: dict[tuple[str, str], str] = field(default_factory=dict)
    codes: dict[int, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def has(self, name: str, label: str) -> bool:
        return (name, label) in self.values

    def count(self, name: str, label: str) -> int:
        return int(self._matching(_COUNT, name, label, "a whole number"))

    def number(self, name: str, label: str) -> float:
        return float(self._matching(_NUMBER, name, label, "a number"))

    def number_if_any(self, name: str, label: str) -> float | None:
        return self.number(name, label) if self.has(name, label) else None

    def share(self, name: str, label: str) -> float:
        """A share of 1 from a percentage."""
        percent = self._value(name, label).removesuffix("%")
        share = float(percent) / 100 if _NUMBER.fullmatch(percent) else 2.0
        if share > 1:
            raise ReportError(f"{name} [{label}]: '{percent}%' is no percentage")
        return share

    def seconds(self, name: str, label: str) -> float:
        try:
            return parse_go_duration(self._value(name, label))
        except ValueError as error:
            raise ReportError(f"{name} [{label}]: {error}") from error

    def _matching(self, form: re.Pattern[str], name: str, label: str, what: str) -> str:
        text = self._value(name, label)
        if not form.fullmatch(text):
            raise ReportError(f"{name} [{label}]: '{text}' is not {what}")
        return text

    def _value(self, name: str, label: str) -> str:
        if not self.has(name, label):
            raise ReportError(
                f"this is no text report of vegeta: it has no line '{name}' with '{label}'"
            )
        return self.values[name, label]


def read_lines(text: str) -> Lines:
    """The lines of one report. Raises ReportError."""
    lines = Lines()
    in_errors = False
    seen = set()
    for line in map(str.strip, text.splitlines()):
        match = _LINE.fullmatch(line)
        if not match:
            if in_errors and line:
                lines.errors.append(line)
            in_errors = in_errors or line == _ERRORS
            continue
        name, labels, values = match.groups()
        if name in seen:
            raise ReportError(f"it has two lines '{name}': keep one report in a file")
        seen.add(name)
        if name == "Status Codes":
            lines.codes = _codes(values)
        else:
            _take(lines, name, labels, values)
    return lines


def _take(lines: Lines, name: str, labels: str, values: str) -> None:
    keys = [label.strip() for label in labels.split(",")]
    texts = [value.strip() for value in values.split(",")]
    if len(keys) != len(texts):
        raise ReportError(f"{name}: {len(keys)} names, but {len(texts)} values")
    lines.values.update({(name, key): text for key, text in zip(keys, texts, strict=True)})


def _codes(values: str) -> dict[int, int]:
    codes: dict[int, int] = {}
    for word in values.split():
        match = _CODE.fullmatch(word)
        if not match:
            raise ReportError(f"Status Codes: '{word}' is not like 200:6000")
        codes[int(match[1])] = codes.get(int(match[1]), 0) + int(match[2])
    return codes
