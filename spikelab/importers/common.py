"""What every importer returns, and what they read reports with.

An importer is a module with `parse(text)`, which returns a `Report` or raises `ReportError`, and
an entry in `FORMATS` (spikelab/importers/__init__.py).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from spikelab.results.run import ConnectionPolicy, Errors, Latency

OF_ALL_ATTEMPTS = (
    "latency_seconds are of all attempts: a failed one counts with the time that it took to fail"
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


class ReportError(Exception):
    """The text is no report of the format. One line, without the file's name."""


@dataclass
class Report:
    """Figures of a run as its report states them; durations in seconds, rates per second.

    Counts are as in `results.run.Step`. `window_seconds`: the time in which requests were started,
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


class ReportPart(BaseModel):
    """A part of a JSON report; keys that the lab does not need are passed over."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


P = TypeVar("P", bound=ReportPart)


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


def latency_in(part: ReportPart, per_second: float) -> Latency:
    """The fields of a part that are percentiles, of which `per_second` units make a second."""
    found = part.model_dump(include=set(Latency.model_fields))
    return Latency(
        **{key: None if value is None else value / per_second for key, value in found.items()}
    )
