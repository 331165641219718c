"""A run while it goes: what the lab knows of it, pushed to Prometheus every second, and progress
on the console, a bar or, without a terminal, plain lines.

The series carry `testid`, `driver` and, where it matters, `phase`: `lab_offered_rate`,
`lab_slo_ok`, `lab_events_pending`, `lab_driver_cpu_cores`, `lab_driver_limited`.
"""

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import Any, Self

import httpx
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from spikelab.console import err, say
from spikelab.drivers.base import Run
from spikelab.drivers.process import Usage
from spikelab.errors import LabError
from spikelab.health import client
from spikelab.judge import generator_limited
from spikelab.objectives import Objective, Verdict
from spikelab.plans.model import Phase
from spikelab.statistics.shares import judge_count, judge_share
from spikelab.stores import InfluxDB, first, read_samples

_PUSH_SECONDS = 2
# What the verdict so far is pushed as.
_SO_FAR: dict[Verdict, float] = {"pass": 1.0, "inconclusive": 0.5, "fail": 0.0}
# A driver that has just begun a phase may still be writing its event.
_EVENT_GRACE_SECONDS = 2


@dataclass(frozen=True)
class Gauge:
    """A value of now, with its labels."""

    name: str
    value: float
    labels: Mapping[str, str]


def push(prometheus_url: str, testid: str, driver: str, gauges: Sequence[Gauge]) -> None:
    """Sends gauges by OTLP; one push that is lost is no reason to disturb a run."""
    now = str(time.time_ns())
    by_name: dict[str, list[dict[str, Any]]] = {}
    for gauge in gauges:
        point = {
            "timeUnixNano": now,
            # A bool would be "true" in JSON, for which Prometheus refuses the whole push.
            "asDouble": float(gauge.value),
            "attributes": _attributes(gauge.labels),
        }
        by_name.setdefault(gauge.name, []).append(point)
    resource = {"service.name": "spikelab", "testid": testid, "driver": driver}
    metrics = [{"name": name, "gauge": {"dataPoints": p}} for name, p in by_name.items()]
    body = {
        "resourceMetrics": [
            {
                "resource": {"attributes": _attributes(resource)},
                "scopeMetrics": [{"metrics": metrics}],
            }
        ]
    }
    with suppress(httpx.HTTPError):
        client.post(
            f"{prometheus_url}/api/v1/otlp/v1/metrics", json=body, timeout=_PUSH_SECONDS
        ).raise_for_status()


def _attributes(labels: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in labels.items()]


class LiveRun:
    """The state of one run, from its plan, its driver's process and the stores."""

    def __init__(self, run: Run, cpus: int) -> None:
        """`cpus`: how many the driver may use."""
        plan = run.plan
        self._plan = plan
        self._phases = plan.phases
        self._testid = run.testid
        self._prometheus = run.prometheus
        self._influxdb = run.influxdb
        self._cpus = cpus
        self._judged = {
            phase.name: plan.objectives_of(phase) for phase in plan.phases if phase.judged
        }
        if plan.driver == "locust":
            # Its series tell no phases apart, so these must be asked the same.
            first, *others = self._judged.values()
            self._judged = {} if any(each != first for each in others) else {"": first}
        self._begun: float | None = None

    def tick(self, driver: Usage) -> None:
        """Looks once and pushes what it sees. Raises LabError when Prometheus does not answer."""
        if self._begun is None and self._total("loadtest:users") > 0:
            self._begun = time.time()
        gauges = [*self._offered(), *self._driver(driver), *self._objectives()]
        if self._influxdb:
            gauges.append(Gauge("lab_events_pending", self._events_pending(self._influxdb), {}))
        push(self._prometheus.url, self._testid, self._plan.driver, gauges)

    def phase_now(self) -> str:
        """The phase that it is time for; before the first request the first one."""
        going = [phase.name for phase in self._phases if self._seconds_in(phase) is not None]
        return going[-1] if going else self._phases[0].name

    def _seconds_in(self, phase: Phase) -> float | None:
        """Since the phase began; None while it is not its time."""
        if self._begun is None:
            return None
        since = time.time() - self._begun - phase.start_seconds
        return since if 0 <= since < phase.duration_seconds else None

    def _offered(self) -> list[Gauge]:
        if self._plan.slopes:
            return []  # k6 says it itself, on the way
        return [
            Gauge("lab_offered_rate", rate, {"phase": phase.name})
            for phase in self._phases
            if (rate := self._plan.offered_rate(phase)) and self._seconds_in(phase) is not None
        ]

    def _driver(self, driver: Usage) -> list[Gauge]:
        use = driver.latest()
        if use is None:
            return []
        limited = bool(generator_limited(use, self._cpus, self._plan.driver))
        return [
            Gauge("lab_driver_cpu_cores", use.cores, {}),
            Gauge("lab_driver_limited", limited, {}),
        ]

    def _objectives(self) -> list[Gauge]:
        """The verdict on what every judged phase did so far: 1 pass, 0 fail, 0.5 undecided. By
        counts as at the end, slow answers by histogram: a limit is then up to a bucket off."""
        requests = self._by_phase("sum by (phase) (loadtest:requests:total{run})")
        begun = {phase: each for phase, each in self._judged.items() if requests.get(phase)}
        if not begun:
            return []
        failed = self._by_phase("sum by (phase) (loadtest:failures:total{run})")
        dropped = self._by_phase("sum by (phase) (loadtest:dropped:total{run})")
        limits = {o.limit for each in begun.values() for o in each if o.key != "success"}
        slow = {limit: self._slow(limit) for limit in limits}

        def verdict(phase: str, objective: Objective) -> Verdict:
            missed = failed.get(phase, 0.0) + dropped.get(phase, 0.0)
            if objective.key != "success":
                good = requests[phase] - failed.get(phase, 0.0)
                missed += slow[objective.limit].get(phase, 0.0) * good
            allowed = objective.allowed_share
            if self._plan.spike:
                return judge_count(round(missed), self._plan.users, allowed, objective.below)
            return judge_share(missed, requests[phase] + dropped.get(phase, 0.0), allowed)

        found = {verdict(phase, objective) for phase, each in begun.items() for objective in each}
        return [Gauge("lab_slo_ok", min(map(_SO_FAR.__getitem__, found), default=1.0), {})]

    def _slow(self, limit: float) -> dict[str, float]:
        """The share of good answers that took longer, by phase."""
        by = "by (phase) " if self._plan.driver == "k6" else ""
        over = f"1 - histogram_fraction(0, {limit}, sum {by}("
        return {
            **self._by_phase(f"{over}loadtest:latency_seconds:total{{run}}))"),
            **self._by_phase(f"{over}loadtest:response_time_seconds:total{{run}}))"),
        }

    def _by_phase(self, expression: str) -> dict[str, float]:
        """Values for the labels `{run}`; all under "" where the driver's series name no phase."""
        asked = expression.replace("{run}", f'{{testid="{self._testid}"}}')
        values = self._prometheus.query(asked)
        return {
            labels.removeprefix("phase="): value
            for labels, value in values.items()
            if math.isfinite(value)
        }

    def _total(self, series: str) -> float:
        return self._prometheus.value(f'sum({series}{{testid="{self._testid}"}})') or 0.0

    def _events_pending(self, influxdb: InfluxDB) -> int:
        """Phases that have begun and are not in InfluxDB."""
        if self._begun is None:
            return 0
        since = time.time() - self._begun - _EVENT_GRACE_SECONDS
        begun = sum(phase.start_seconds <= since for phase in self._phases)
        try:
            rows = influxdb.query(
                f"SELECT state FROM events WHERE testid = '{self._testid}'", _PUSH_SECONDS
            )
        except LabError:
            return begun
        return max(0, begun - len(rows))


_PLAIN_SECONDS = 5


class RunProgress:
    """Reads the normalised series, so every driver looks the same."""

    def __init__(self, run: Run) -> None:
        plan = run.plan
        self._testid = run.testid
        self._spike_users = plan.users if plan.spike else None
        self._seconds = max(phase.start_seconds + phase.duration_seconds for phase in plan.phases)
        self._began = monotonic()
        self._prometheus = run.prometheus
        self._sockets_url = f"{run.endpoints.sockets}/metrics" if run.own_target else None
        self._next_line = monotonic()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[text]}"),
            TimeElapsedColumn(),
            console=err,
            transient=True,
        )
        self._task = self._bar.add_task(
            plan.phases[0].name, total=self._spike_users or self._seconds, text=""
        )

    def __enter__(self) -> Self:
        if err.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if err.is_terminal:
            self._bar.stop()

    def tick(self, phase: str) -> None:
        """Shows the state in this phase. Raises LabError when a store does not answer."""
        answered, failed, rate = self._counts()
        connections = self._connections()
        of = f" of {self._spike_users:,}" if self._spike_users else ""
        text = f"{answered:,.0f}{of} done, {rate:,.0f}/s, {failed:,.0f} failed"
        if connections is not None:
            text += f", {connections:,.0f} connections"
        if err.is_terminal:
            done = answered if self._spike_users else monotonic() - self._began
            self._bar.update(self._task, description=phase, completed=done, text=text)
        elif monotonic() >= self._next_line:
            self._next_line = monotonic() + _PLAIN_SECONDS
            say(f"{phase}: {text}")

    def _counts(self) -> tuple[float, float, float]:
        run = f'{{testid="{self._testid}"}}'
        parts = {
            "answered": f"sum(loadtest:requests:total{run})",
            "failed": f"sum(loadtest:failures:total{run})",
            "rate": f"sum(loadtest:requests:rate{run})",
        }
        values = self._prometheus.query(
            " or ".join(f'label_replace({e}, "is", "{n}", "", "")' for n, e in parts.items())
        )
        return tuple(values.get(f"is={name}", 0.0) for name in parts)  # type: ignore[return-value]

    def _connections(self) -> float | None:
        if self._sockets_url is None:
            return None
        return first(read_samples(self._sockets_url, "port"), "sockets_established")
