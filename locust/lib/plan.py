"""The plan of the run: the JSON file that LAB_PLAN names, or a run by hand without phases.

The keys are those of the lab's plan files (docs/plans.md); k6's scripts read the same file.
"""

import json
import math
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_STATUS = re.compile(r"([2-5])(xx|[0-9]{2})")
KINDS = ("users", "rate")
ARRIVALS = ("constant", "poisson")
CHANGE_SECONDS = 1.0  # Locust changes its load once in this time
_TOO_SOON = "less than 1s, in which Locust changes its load once,"


class PlanError(ValueError):
    """A mistake of the user's, in one line."""


@dataclass(frozen=True)
class Phase:
    """A stretch of load: `value` users in a closed loop, or `value` requests a second.

    A plan's `most_users` is not read: it is for k6, which takes users for a rate as it needs them.
    """

    name: str
    kind: str
    value: float
    start_seconds: float
    duration_seconds: float
    url: str | None = None
    ramp_up_seconds: float = 0.0
    user_period_seconds: float = 0.0
    body_bytes: int | None = None
    poisson: bool = False  # requests come by chance, whatever the answers take
    slo: tuple[str, ...] | None = None  # instead of the plan's

    @property
    def text(self) -> str:
        """Its load, for whoever looks at its region: "1000 rate"."""
        return f"{self.value:.10g} {self.kind}"

    @property
    def end_seconds(self) -> float:
        return self.start_seconds + self.duration_seconds

    def users(self, throughput: float) -> int:
        """Users that carry the phase; of a rate, each sends `throughput` requests a second."""
        return math.ceil(self.value / throughput) if self.kind == "rate" else int(self.value)

    def period_seconds(self, throughput: float) -> float:
        """Time between the starts of a user's requests; 0 if the next follows the answer."""
        if self.kind == "rate":
            return self.users(throughput) / self.value
        return self.user_period_seconds


@dataclass(frozen=True)
class Plan:
    """A run's plan. Without phases the command line says how much load and how long."""

    testid: str
    url: str = "http://127.0.0.1:8080"
    method: str = "GET"
    path: str = "/hello"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    timeout_seconds: float = 60.0
    keep_alive: bool = True
    expect: frozenset[int] = frozenset(range(200, 300))  # the statuses of a good answer
    phases: tuple[Phase, ...] = ()
    slo: tuple[str, ...] = ("success >= 99.9%",)
    events_url: str = ""
    events_database: str = "myk6db"
    summary: str | None = None
    hosts: Mapping[str, str] = field(default_factory=dict)  # name:port → address

    @property
    def method_with_body(self) -> str:
        """Of a phase with `body_bytes`."""
        return self.method if self.method in ("POST", "PUT", "PATCH") else "POST"


def seconds(text: str) -> float:
    """Seconds of a duration such as ``250ms``, ``1.5s`` or ``1m30s``. Raises PlanError."""
    if not text or _PART.sub("", text):
        raise PlanError(f'duration "{text}": write a number with a unit, like 250ms, 60s or 1m30s')
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))


def statuses(texts: Iterable[str | int]) -> frozenset[int]:
    """The statuses that ``302`` or ``2xx`` stand for. Raises PlanError."""
    found: set[int] = set()
    for text in texts:
        match = _STATUS.fullmatch(str(text))
        if not match:
            raise PlanError(f'expect "{text}": give statuses of good answers, such as 2xx or 302')
        first = int(match[1]) * 100
        found.update(range(first, first + 100) if match[2] == "xx" else [int(text)])
    return frozenset(found)


def read_plan(
    script: str, path_by_hand: str = Plan.path, environ: Mapping[str, str] = os.environ
) -> Plan:
    """The plan in LAB_PLAN, or a run by hand of this script. Raises PlanError."""
    path = environ.get("LAB_PLAN")
    if not path:
        return _by_hand(script, path_by_hand, environ)
    try:
        return parse_plan(json.loads(Path(path).read_text(encoding="utf-8")))
    except PlanError as error:
        raise PlanError(f"LAB_PLAN={path}: {error}") from error
    except KeyError as error:
        raise PlanError(f"LAB_PLAN={path}: the key {error} is missing") from error
    except (OSError, ValueError, TypeError, AttributeError) as error:
        cure = "give the absolute path of a plan in JSON"
        raise PlanError(f"LAB_PLAN={path}: {error}; {cure}") from error


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _by_hand(script: str, path: str, environ: Mapping[str, str]) -> Plan:
    utc = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return Plan(
        testid=environ.get("TESTID") or f"{utc}-locust-{script}-{secrets.token_hex(2)}",
        url=environ.get("BASE_URL", Plan.url),
        path=path,
        expect=statuses(_listed(environ["EXPECT"])) if environ.get("EXPECT") else Plan.expect,
        events_url=environ.get("INFLUXDB_URL", "http://127.0.0.1:8086"),
    )


def parse_plan(data: Mapping[str, Any]) -> Plan:
    """A resolved plan. Raises PlanError, or KeyError for a key that must be there."""
    request = data.get("request", {})
    events = data.get("events") or {}
    return Plan(
        testid=data["testid"],
        url=data["target"]["url"].rstrip("/"),
        method=request.get("method", Plan.method),
        path=request.get("path", Plan.path),
        headers=dict(request.get("headers") or {}),
        body=request.get("body"),
        timeout_seconds=seconds(request.get("timeout", "60s")),
        keep_alive=request.get("keep_alive", True),
        expect=statuses(request["expect"]) if "expect" in request else Plan.expect,
        phases=_phases(data["phases"]),
        slo=tuple(data.get("slo", Plan.slo)),
        events_url=events.get("url") or "",
        events_database=events.get("database", Plan.events_database),
        summary=data.get("summary"),
        hosts=dict(data.get("hosts") or {}),
    )


def _phases(items: list[dict[str, Any]]) -> tuple[Phase, ...]:
    phases = tuple(sorted(map(_phase, items), key=lambda phase: phase.start_seconds))
    for before, after in pairwise(phases):
        if after.start_seconds < before.end_seconds:
            raise PlanError(
                f'phase "{after.name}" starts before "{before.name}" ends; '
                "Locust runs one phase at a time, k6 several"
            )
        if 0 < after.start_seconds - before.end_seconds < CHANGE_SECONDS:
            raise PlanError(f'phase "{after.name}" starts {_TOO_SOON} after "{before.name}"')
    return phases


def _phase(item: Mapping[str, Any]) -> Phase:
    name, kind, value = item["name"], item["kind"], item["value"]
    if kind not in KINDS:
        raise PlanError(f'phase "{name}": kind "{kind}" is none of {", ".join(KINDS)}')
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise PlanError(f'phase "{name}": {value} {kind}; give a number above 0')
    if kind == "users" and value != int(value):
        raise PlanError(f'phase "{name}": {value} users; give a whole number')
    start, duration = seconds(item.get("start", "0s")), seconds(item["duration"])
    ramp_up, period, jitter = (
        seconds(item.get(key) or "0s") for key in ("ramp_up", "period", "jitter")
    )
    if kind == "rate" and (ramp_up or period):
        raise PlanError(f'phase "{name}": ramp_up and period are for kind users, not for a rate')
    if jitter:
        raise PlanError(f'phase "{name}": jitter is for k6; Locust spreads its users by itself')
    if duration < CHANGE_SECONDS:
        raise PlanError(f'phase "{name}": ends {_TOO_SOON} after its start')
    if ramp_up > duration:
        raise PlanError(f'phase "{name}": ramp_up is longer than the phase')
    return Phase(
        name,
        kind,
        value,
        start,
        duration,
        url=item.get("url"),
        ramp_up_seconds=ramp_up,
        user_period_seconds=period,
        body_bytes=_body_bytes(item),
        poisson=_poisson(item),
        slo=None if item.get("slo") is None else tuple(item["slo"]),
    )


def _poisson(item: Mapping[str, Any]) -> bool:
    arrival = item.get("arrival") or "constant"
    if arrival not in ARRIVALS:
        raise PlanError(
            f'phase "{item["name"]}": arrival "{arrival}" is none of {", ".join(ARRIVALS)}'
        )
    if arrival == "poisson" and item["kind"] != "rate":
        raise PlanError(f'phase "{item["name"]}": arrival is for kind rate')
    return bool(arrival == "poisson")


def _body_bytes(item: Mapping[str, Any]) -> int | None:
    size = item.get("body_bytes")
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 0):
        raise PlanError(f'phase "{item["name"]}": body_bytes {size}; give a whole number')
    return size
