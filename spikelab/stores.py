"""The stores that hold what a run left: InfluxDB 1.x (line protocol and InfluxQL), Prometheus, and
whether the latter has recorded a stretch of time; also `/metrics` pages, read directly.

A run waits for the first record (`await_beat`) and for the last one (`settle`); `gaps` are the
times between them in which nothing was recorded.
"""

import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

import httpx
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from spikelab.errors import LabError
from spikelab.health import client, unanswered
from spikelab.settings import DATABASE, Endpoints
from spikelab.signals import OF_LAB_TARGET

_TIMEOUT_SECONDS = 10

FieldValue = str | bool | int | float


def line(
    measurement: str, tags: Mapping[str, str], fields: Mapping[str, FieldValue | None], time_ms: int
) -> str:
    r"""A point in line protocol. What has no value is left out.

    >>> line("runs", {"testid": "t", "plan": "p"}, {"good": 3, "why": 'a "b"', "rate": None}, 7)
    'runs,plan=p,testid=t good=3i,why="a \\"b\\"" 7'
    >>> line("run_steps", {"step": "a, b\nc"}, {"good": 3}, 7)
    'run_steps,step=a\\,\\ b\\ c good=3i 7'
    """
    written = ",".join(f"{k}={_field(v)}" for k, v in fields.items() if v is not None)
    named = {k: _tag(v) for k, v in sorted(tags.items())}
    series = ",".join([measurement, *(f"{k}={v}" for k, v in named.items() if v)])
    return f"{series} {written} {time_ms}"


def _tag(value: str) -> str:
    """A backslash at its end would escape what comes after it."""
    return re.sub("([,= ])", r"\\\1", " ".join(value.splitlines()).rstrip("\\"))


def _field(value: FieldValue) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return f"{value}i"
        case float():
            return repr(value)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'


class InfluxDB:
    """An InfluxDB by its URL; the database is the lab's."""

    def __init__(self, url: str) -> None:
        self.url = url

    def create_database(self) -> None:
        """Makes the database; an existing one is left as it is."""
        self._post("query", params={"q": f'CREATE DATABASE "{DATABASE}"'})

    def query(self, statement: str, seconds: float = _TIMEOUT_SECONDS) -> list[dict[str, Any]]:
        """Rows of one InfluxQL statement as dictionaries, times in epoch milliseconds."""
        parameters = {"db": DATABASE, "q": statement, "epoch": "ms"}
        body = self._post("query", seconds, params=parameters).json()
        result = body["results"][0]
        if "error" in result:
            raise LabError(f"InfluxDB refused a query: {result['error']}")
        return [
            {**series.get("tags", {}), **dict(zip(series["columns"], row, strict=True))}
            for series in result.get("series", [])
            for row in series["values"]
        ]

    def write(self, lines: str) -> None:
        """Writes points in line protocol with millisecond timestamps."""
        self._post("write", params={"db": DATABASE, "precision": "ms"}, content=lines.encode())

    def _post(
        self, path: str, seconds: float = _TIMEOUT_SECONDS, **arguments: Any
    ) -> httpx.Response:
        try:
            response = client.post(f"{self.url}/{path}", timeout=seconds, **arguments)
            response.raise_for_status()
        except httpx.HTTPStatusError as error:
            raise LabError(
                f"InfluxDB at {self.url} refused /{path}: {_reason(error.response)}"
            ) from error
        except httpx.HTTPError as error:
            raise LabError(
                f"InfluxDB at {self.url} does not answer /{path} ({error}): ./lab status"
            ) from error
        return response


def _reason(response: httpx.Response) -> str:
    said = response.text.strip()
    with suppress(ValueError, KeyError, TypeError):
        said = str(response.json()["error"])
    # It takes no new series until it is started again, whatever room there is by then.
    cure = ": make room, then see docs/reliability.md" if "no space left" in said else ""
    return f"{said or response.status_code}{cure}"


class Prometheus:
    """A Prometheus by its URL."""

    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, expression: str, at: datetime | None = None) -> dict[str, float]:
        """Values by the series' labels written as ``k=v,…`` (sorted, without the name).

        Raises LabError when Prometheus does not answer or refuses the expression.
        """
        parameters = {"query": expression}
        if at is not None:
            parameters["time"] = f"{at.timestamp():.3f}"
        return {
            _labels(series["metric"]): float(series["value"][1])
            for series in self._ask("query", parameters)
            if "value" in series
        }

    def value(self, expression: str, at: datetime | None = None) -> float | None:
        """The value of an expression that yields at most one series; None without one."""
        return next(iter(self.query(expression, at).values()), None)

    def values(
        self, expression: str, first_seconds: float, last_seconds: float, step_seconds: float
    ) -> dict[int, float]:
        """Values of an expression that yields at most one series, by whole epoch seconds: a step
        is of one at least."""
        parameters = {
            "query": expression,
            "start": str(first_seconds),
            "end": str(last_seconds),
            "step": str(step_seconds),
        }
        found = self._ask("query_range", parameters)
        values = found[0].get("values", []) if found else []
        return {int(seconds): float(value) for seconds, value in values}

    def evaluated(self, rule: str) -> datetime | None:
        """When the last evaluation that is complete of a rule's group began; None without one."""
        groups = self._answer(f"rules?type=record&rule_name[]={rule}")["groups"]
        return datetime.fromisoformat(groups[0]["lastEvaluation"]) if groups else None

    def age_seconds(self) -> float:
        """Since its start, by its own clock. Raises LabError."""
        said = self._answer("status/runtimeinfo")
        began, now = (datetime.fromisoformat(said[name]) for name in ("startTime", "serverTime"))
        return (now - began).total_seconds()

    def _ask(self, kind: str, parameters: Mapping[str, str]) -> list[dict[str, Any]]:
        result: list[dict[str, Any]] = self._answer(kind, parameters)["result"]
        return result

    def _answer(self, kind: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        try:
            answer = client.request(
                "POST" if query else "GET",
                f"{self.url}/api/v1/{kind}",
                data=query,
                timeout=_TIMEOUT_SECONDS,
            ).json()
        except (httpx.HTTPError, ValueError) as error:
            raise LabError(
                f"Prometheus at {self.url} does not answer ({type(error).__name__}): ./lab status"
            ) from error
        if answer["status"] != "success":
            asked = query["query"] if query else kind
            raise LabError(f"Prometheus refused a query: {answer['error']}: {asked}")
        data: dict[str, Any] = answer["data"]
        return data


def _labels(metric: dict[str, str]) -> str:
    return ",".join(f"{k}={v}" for k, v in sorted(metric.items()) if k != "__name__")


# Scraped every second in every runtime, also while there is no target.
_BEAT = 'max(timestamp(up{job="sockets"}))'
# Two beats may be late on a machine at work; a store that is started again takes longer.
_MISSED_SECONDS = 2.5
# Prometheus takes up its targets 5 s after its own start, and scrapes each of them a moment later.
_FIRST_BEAT_SECONDS = 10.0
_POLL_SECONDS = 0.1
# Prometheus answers no query with more than 11,000.
_MOST_POINTS = 10_000

Gap = tuple[float, float]


def await_beat(prometheus: Prometheus) -> None:
    """Waits until Prometheus records: one that has just been started would miss the beginning of a
    run. Where nothing comes for 10 s the run begins without: what it lacks is a gap, and said."""
    deadline = time.monotonic() + _FIRST_BEAT_SECONDS
    while time.monotonic() < deadline:
        with suppress(LabError):
            age = prometheus.age_seconds()
            # From before a restart there are beats as well.
            last_beat = prometheus.value(f"time() - {_BEAT}")
            if age > _FIRST_BEAT_SECONDS or (last_beat is not None and last_beat < age):
                return
        time.sleep(_POLL_SECONDS)


# The target is scraped every 2 s: this long after the end, the last scrape is in for certain.
SETTLE_SECONDS = 3.0
# Of the rules that make the normalised series: they are evaluated together, every second.
_RULE = "loadtest:requests:rate"


def settle(prometheus: Prometheus, ended: datetime) -> None:
    """Waits until what shows the end of the run is stored: a scrape of the target and one of its
    sockets, and the normalised series of what the driver pushed."""
    while (left := SETTLE_SECONDS - (datetime.now(UTC) - ended).total_seconds()) > 0:
        # One that does not answer may be starting again.
        with suppress(LabError):
            if _stored(prometheus, ended):
                return
        time.sleep(min(_POLL_SECONDS, left))


def _stored(prometheus: Prometheus, ended: datetime) -> bool:
    if not scraped_since(prometheus, ended):
        return False
    evaluated = prometheus.evaluated(_RULE)
    return evaluated is not None and evaluated >= ended


def scraped_since(prometheus: Prometheus, ended: datetime, at: datetime | None = None) -> bool:
    """Whether the lab's own target and its sockets were, from that moment on; as it is known `at`
    a moment, None: now."""
    # A scrape is stored whole, under the time at which it began. Of those that answer: a replica
    # that is not there is waited for until the scrape times out.
    up = f'up{{job=~"target|sockets", {OF_LAB_TARGET}}}'
    scraped = prometheus.query(f"min by (job) (timestamp({up}) and {up} == 1)", at)
    return len(scraped) == 2 and min(scraped.values()) >= ended.timestamp()


def gaps(prometheus: Prometheus, first_seconds: float, last_seconds: float) -> list[Gap]:
    """From the last record before each gap to the first one after it, in epoch seconds.

    Asked within five minutes after the time in question. Raises LabError.
    """
    first, last = math.floor(first_seconds), math.ceil(last_seconds)
    beats: list[float] = []
    for begin in range(first, last + 1, _MOST_POINTS):
        end = min(last, begin + _MOST_POINTS - 1)
        beats += prometheus.values(_BEAT, begin, end, 1).values()
    return between(beats, first, last)


def between(beats: Iterable[float], first: int, last: int) -> list[Gap]:
    """Where the beats are too far apart, or from an end of the time in question.

    >>> between([99.4, 100.4, 104.4, 105.4], 100, 106)
    [(100.4, 104.4)]
    """
    starts = sorted({first, *(beat for beat in beats if beat > first)})
    # The beat of the last second may be a second old.
    ends = [*starts[1:], max(last - 1, starts[-1])]
    return [
        (start, end)
        for start, end in zip(starts, ends, strict=True)
        if end - start > _MISSED_SECONDS
    ]


def inside(moment: float, step_seconds: float, found: list[Gap]) -> bool:
    """Whether nothing was recorded in the step that ends at that moment."""
    return any(begin <= moment - step_seconds and moment < end for begin, end in found)


# A store that crashed is started again at once: it is given so long.
_BACK_SECONDS = 10.0


@dataclass(frozen=True)
class Stores:
    """The health checks of stores, by their names."""

    health: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, endpoints: Endpoints) -> Self:
        """Those that are there now."""
        health = {"Prometheus": f"{endpoints.prometheus}/-/ready"}
        if endpoints.influxdb:
            health["InfluxDB"] = f"{endpoints.influxdb}/ping"
        return cls(health)

    def missing(self) -> list[str]:
        """The stores that have gone and do not come back."""
        return unanswered(self.health, _BACK_SECONDS)

    def require(self) -> None:
        """Raises LabError naming the stores that have gone."""
        if missing := self.missing():
            raise LabError(f"{self.named(missing)} does not answer: ./lab up starts it again")

    def named(self, names: Sequence[str]) -> str:
        """Stores with their addresses."""
        return ", ".join(f"{name} ({self.health[name]})" for name in names)


Samples = dict[tuple[str, str], float]


def read_samples(url: str, label: str = "") -> Samples:
    """(sample name, value of `label` or "") → value. Raises LabError when it does not answer."""
    return {(sample.name, sample.labels.get(label, "")): sample.value for sample in read_page(url)}


def read_page(url: str) -> list[Sample]:
    """All samples of a `/metrics` page. Raises LabError when it does not answer."""
    try:
        response = client.get(url, timeout=5.0, headers={"Accept": "text/plain"})
        response.raise_for_status()
        families = text_string_to_metric_families(response.text)
        return [sample for family in families for sample in family.samples]
    except (httpx.HTTPError, ValueError) as error:
        raise LabError(f"{url} does not answer ({type(error).__name__}): ./lab status") from error


def first(samples: Samples, name: str) -> float | None:
    """The first sample of that name, whatever its label."""
    return next((value for (each, _), value in samples.items() if each == name), None)
