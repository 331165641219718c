"""Run records from reports. A report's run is known by its content and its name, so that reading it
again finds the record that it has."""

# - What one report says of one stretch of load, in one shape for every format.
# - The files to import, and what their names say: `<variant>-<rate>-run<n>`.
import hashlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from spikelab import paths
from spikelab.console import warn
from spikelab.errors import UsageError
from spikelab.judge import judge_run, judge_step
from spikelab.objectives import QUANTILES, Objective
from spikelab.results.run import (
    IMPORTED,
    ConnectionPolicy,
    Connections,
    Errors,
    Generator,
    Host,
    Latency,
    RunRecord,
    Step,
    StepGenerator,
    TargetRecord,
    read_record,
)


@dataclass
class Report:
    """Figures of a run as its report states them; durations in seconds, rates per second.

    Counts are as in `record.Step`. `window_seconds` is the time in which requests were started,
    `drain_seconds` the wait for the last answer after it (0 where the report does not say).
    `latency_seconds` is what the report prints, also where it had failures. None: it does not say;
    of `url` and `policy` the defaults stand for that.
    """

    requests: int
    failures: int
    completed: int
    errors: Errors
    window_seconds: float
    started_rate: float
    achieved_rate: float
    latency_seconds: Latency
    latency_mean_seconds: float | None = None
    drain_seconds: float = 0.0
    dropped: int = 0
    response_bytes_mean: float | None = None
    started: datetime | None = None
    offered_rate: float | None = None
    url: str = ""
    policy: ConnectionPolicy = "keep-alive"
    version: str | None = None
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.requests:
            raise ReportError("there is no request in it")
        if self.failures > self.requests:
            raise ReportError(f"{self.failures:,} failures of {self.requests:,} requests")
        if self.window_seconds + self.drain_seconds > _MOST_SECONDS:
            raise ReportError("it says that the test took longer than a test can")
        if (
            max(self.started_rate, self.achieved_rate) > _HIGHEST_RATE
            or self.requests > _HIGHEST_RATE * self.window_seconds > 0
        ):
            raise ReportError("it says that more was requested a second than can be")


@dataclass(frozen=True)
class Format:
    """`endings`: how its files' names end, the best first where one run has several.
    `companions`: files that the tool writes beside them and that hold nothing more to import."""

    name: str
    parse: Callable[[str], Report]
    endings: tuple[str, ...]
    companions: tuple[str, ...] = ()


_NO_TIME = "the report has no time: it was taken to end when its file was last changed"


@dataclass(frozen=True)
class ReportSource:
    """A file with one report. `offered_rate` (requests/s) and `variant` are None where its name
    does not say. `group`: the name of what its run is one of, for `plan`."""

    path: Path
    group: str
    variant: str | None = None
    offered_rate: float | None = None
    repeat: int = 1

    @property
    def name(self) -> str:
        # A name that is no UTF-8 can be opened, but not written.
        return self.path.name.encode(errors="replace").decode()

    def read(self) -> str:
        """Its text. Raises UsageError."""
        name = paths.shown(self.path)
        try:
            if self.path.stat().st_size > _LARGEST_BYTES:
                raise UsageError(f"{name}: this is too large for a report")
            return self.path.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise UsageError(f"{name}: cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise UsageError(f"{name}: this is no text in UTF-8") from error


@dataclass(frozen=True)
class Imported:
    """A report that was read, and where from. `digest` is its run's identity."""

    format: str
    source: ReportSource
    report: Report
    digest: str

    @property
    def offered_rate(self) -> float | None:
        """What the file's name says, else the report."""
        return self.source.offered_rate or self.report.offered_rate


def digest_of(format_: str, source: ReportSource, text: str) -> str:
    """12 hex digits. Variant, rate and repeat are part of it: equal reports of two repeats are two
    runs."""
    name = f"{format_}\0{source.variant}\0{source.offered_rate}\0{source.repeat}\0"
    return hashlib.sha256((name + text).encode()).hexdigest()[:12]


def find_record(imported: Imported) -> RunRecord | None:
    """The record that an earlier import made of it."""
    for path in sorted(paths.RESULTS.glob(f"*-{imported.digest}/run.json")):
        if (record := read_record(path.parent.name)) is not None:
            return record
    return None


def build_record(
    imported: Imported, objectives: Sequence[Objective], earlier: RunRecord | None
) -> RunRecord:
    """The record of an imported run. Without objectives it is inconclusive: nothing was asked.

    What no report says is null, or where the record must have a value empty: of the machine, the
    target and, but for Fortio, the URL and whether connections were kept alive. Goodput is of all
    good answers: percentiles do not count those above a limit.
    """
    source, report = imported.source, imported.report
    warnings = list(report.warnings)
    if report.started is None:
        warnings.append(_NO_TIME)
    length = timedelta(seconds=report.window_seconds + report.drain_seconds)
    started = _started(imported, length, earlier)
    step = _step(imported, started, started + length)
    if objectives:
        step.slo = [objective.text for objective in objectives]
        step.verdict = judge_step(step, objectives, tried=None)
    return RunRecord(
        testid=(
            earlier.testid
            if earlier
            else f"{started:%Y%m%dT%H%M%SZ}-{source.group}-{imported.digest}"
        ),
        plan=source.group,
        labels={IMPORTED: source.name},
        driver=imported.format,
        started=started,
        ended=started + length,
        valid=True,
        warnings=warnings,
        verdict=judge_run(True, [step]),
        experiment=earlier.experiment if earlier else None,
        target=TargetRecord(url=report.url, settings={}, effective={}, runtime=None),
        connections=Connections(policy=report.policy),
        steps=[step],
        generator=Generator(versions={imported.format: report.version} if report.version else {}),
        host=Host(kernel="", cpus=0, limits={}),
    )


def _started(imported: Imported, length: timedelta, earlier: RunRecord | None) -> datetime:
    if imported.report.started is not None:
        return imported.report.started.astimezone(UTC)
    if earlier:
        # A copied file is no other run.
        return earlier.started
    changed = imported.source.path.stat().st_mtime
    return datetime.fromtimestamp(round(changed, 3), UTC) - length


def _step(imported: Imported, started: datetime, ended: datetime) -> Step:
    report, rate = imported.report, imported.offered_rate
    name = "load" if rate is None else f"rate-{rate:.15g}"
    good = report.requests - report.failures
    return Step(
        name=name,
        phase=name,
        variant=imported.source.variant,
        repeat=imported.source.repeat,
        started=started,
        ended=ended,
        offered_rate=rate,
        started_rate=round(report.started_rate, 3),
        achieved_rate=round(report.achieved_rate, 3),
        goodput=round(good / report.window_seconds, 3) if report.window_seconds else None,
        requests=report.requests,
        completed=report.completed,
        dropped=report.dropped,
        failures=report.failures,
        errors=report.errors,
        response_bytes_mean=report.response_bytes_mean,
        latency_seconds=report.latency_seconds if good else Latency(),
        latency_mean_seconds=report.latency_mean_seconds if good else None,
        latency_with_failures_seconds=_with_failures(report),
        drain_seconds=report.drain_seconds,
        generator=StepGenerator(),
        verdict="inconclusive",
    )


def _with_failures(report: Report) -> Latency:
    """The printed percentiles, infinite (None) where more requests failed than lie above.

    With fewer failures the exact value is somewhat higher; a report does not hold it.
    """
    good = report.requests - report.failures
    printed = report.latency_seconds.model_dump()
    return Latency(
        **{
            key: printed[key] if math.ceil(round(quantile * report.requests, 6)) <= good else None
            for key, quantile in QUANTILES.items()
        }
    )


# Bounds that no report reaches, so that a broken number cannot overflow a time.
_MOST_SECONDS = 1e9
_HIGHEST_RATE = 1e12
Rate = Annotated[float, Field(ge=0, le=_HIGHEST_RATE)]
Seconds = Annotated[float, Field(ge=0, le=_MOST_SECONDS)]
Milliseconds = Annotated[float, Field(ge=0, le=_MOST_SECONDS * 1e3)]
Nanoseconds = Annotated[float, Field(ge=0, le=_MOST_SECONDS * 1e9)]
Moment = Annotated[
    AwareDatetime, Field(ge=datetime(1970, 1, 1, tzinfo=UTC), le=datetime(2200, 1, 1, tzinfo=UTC))
]

OF_ALL_ATTEMPTS = (
    "latency_seconds are of all attempts: a failed one counts with the time that it took to fail"
)


class ReportError(Exception):
    """The text is no report of the format. One line, without the file's name."""


class Part(BaseModel):
    """A part of a JSON report; keys that the lab does not need are passed over."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


P = TypeVar("P", bound=Part)


def read_part(model: type[P], source: str | dict[str, Any], what: str) -> P:
    """A JSON text, or a part of one. Raises ReportError with the first key that is wrong."""
    try:
        if isinstance(source, str):
            return model.model_validate_json(source)
        return model.model_validate(source)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        said = first["msg"][:1].lower() + first["msg"][1:]
        raise ReportError(f"this is no {what}: {where + ': ' if where else ''}{said}") from error


def errors_by_status(codes: dict[int, int]) -> Errors:
    """Failures by class from answers by status; what is no 4xx or 5xx is `other`."""
    errors = Errors()
    for code, count in codes.items():
        if 400 <= code < 500:
            errors.http_4xx += count
        elif 500 <= code < 600:
            errors.http_5xx += count
        else:
            errors.other += count
    return errors


NAMING = "<variant>-<rate>-run<n>"
# The variant is shown in tables and is a tag in InfluxDB: no brackets, no control characters.
_NAME = re.compile(
    r"(?P<variant>[\w .,+=@%-]*\w[\w .,+=@%-]*)-(?P<rate>[0-9]{1,9}(?:\.[0-9]{1,6})?)"
    r"-run(?P<repeat>[0-9]{1,6})"
)
_LARGEST_BYTES = 64 * 2**20
_MOST_NAMED = 5


def find(path: Path, format_: Format) -> list[ReportSource]:
    """The file, or the named files in the folder, in the order of variant, rate and repeat.

    Raises UsageError when there is none, or two of one run. Other files are named in a warning.
    """
    if path.is_file():
        return [_source(path, format_)]
    if not path.is_dir():
        raise UsageError(f"{path}: there is no such file or folder")
    found: dict[tuple[str | None, float | None, int], ReportSource] = {}
    unknown = []
    for each in _by_ending(path, format_):
        source = _source(each, format_)
        if source.variant is None:
            unknown.append(each.name)
            continue
        cell = (source.variant, source.offered_rate, source.repeat)
        other = found.setdefault(cell, source)
        if other is not source and _stem(other.path, format_) != _stem(each, format_):
            raise UsageError(
                f"{paths.shown(path)}: {other.name} and {source.name} are the same run: "
                "rename one or take it away"
            )
    unknown += _strangers(path, format_)
    if unknown:
        _warn_of(path, sorted(unknown))
    if not found:
        raise UsageError(
            f"{paths.shown(path)}: there is no file named {NAMING}{format_.endings[-1]} in it"
        )
    return sorted(
        found.values(), key=lambda each: (each.variant or "", each.offered_rate or 0, each.repeat)
    )


def _by_ending(folder: Path, format_: Format) -> list[Path]:
    """The format's files, those with the best ending first: `setdefault` keeps these."""
    files = [each for each in sorted(folder.iterdir()) if each.is_file()]
    return [
        each for ending in format_.endings for each in files if each.name.lower().endswith(ending)
    ]


def _strangers(folder: Path, format_: Format) -> list[str]:
    known = (*format_.endings, *format_.companions)
    return [
        each.name
        for each in folder.iterdir()
        if not each.name.startswith(".")
        and (each.is_dir() or not each.name.lower().endswith(known))
    ]


def _warn_of(folder: Path, names: Sequence[str]) -> None:
    more = len(names) - _MOST_NAMED
    warn(
        f"{paths.shown(folder)}: left out, as they are not named {NAMING}: "
        f"{', '.join(names[:_MOST_NAMED])}{f' and {more} more' if more > 0 else ''}"
    )


def _stem(path: Path, format_: Format) -> str:
    """The name without the format's ending."""
    lower = path.name.lower()
    ending = next((each for each in format_.endings if lower.endswith(each)), path.suffix)
    return path.name[: len(path.name) - len(ending)]


def _source(path: Path, format_: Format) -> ReportSource:
    match = _NAME.fullmatch(_stem(path, format_))
    if not match or not float(match["rate"]):
        return ReportSource(path, _slug(_stem(path, format_)) or format_.name)
    return ReportSource(
        path=path,
        group=_slug(path.resolve().parent.name) or format_.name,
        variant=match["variant"],
        offered_rate=float(match["rate"]),
        repeat=int(match["repeat"]),
    )


def _slug(name: str) -> str:
    """A name as plans have them."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60]
