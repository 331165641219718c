"""The run record, results/<testid>/run.json: every figure of a run and what it was made with.

`docs/run.schema.json` is generated from these models (`python -m docs.schemas`; `./lab test`
fails when it is out of date).
Durations are in seconds, rates per second, times ISO 8601 in UTC.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from spikelab.objectives import QUANTILES, ObjectiveText, Verdict
from spikelab.results.files import Count, Moment, Part, ResultFile

Scalar = str | int | float | bool


SCHEMA_VERSION = 2
# The label of a run that `./lab import` has read from another tool's report.
IMPORTED = "imported"
ConnectionPolicy = Literal["keep-alive", "close"]
Arrival = Literal["constant", "poisson"]
# What a record's latencies are. "response time": from the moment a request was due (open loop) or
# begun (closed loop, spike) to its last byte. "http_req_duration": k6's own, of its last hop,
# without connecting. "request": Locust's own, also of some requests only. "report": what another
# tool printed.
LatencyBasis = Literal["response time", "http_req_duration", "request", "report"]
ERROR_CLASSES = (
    "dial_timeout",
    "request_timeout",
    "reset",
    "refused",
    "http_4xx",
    "http_5xx",
    "other",
)


def now() -> datetime:
    return datetime.now(UTC)


class Latency(Part):
    """Percentiles in seconds; null: no such answer, or infinite where failures count."""

    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    p99_9: float | None = None
    max: float | None = None


class LatencyParts(Part):
    """Means over good answers in seconds, which are disjoint and add up to the mean response time;
    null: the driver cannot tell this part from the next one."""

    lateness: Annotated[
        float | None, Field(description="from the moment it was due until the driver began it")
    ] = None
    waiting_for_connection: float | None = None
    connecting: float | None = None
    tls: float | None = None
    sending: float | None = None
    waiting: Annotated[float | None, Field(description="for the first byte")] = None
    receiving: float | None = None


class Lateness(Part):
    """How late the driver itself was, in seconds."""

    p50: float
    p99: float
    max: float


class Errors(Part):
    """Failed requests by class. `bodies`: a sample of wrong answers, as status and beginning."""

    dial_timeout: Count = 0
    request_timeout: Count = 0
    reset: Count = 0
    refused: Count = 0
    http_4xx: Count = 0
    http_5xx: Count = 0
    other: Count = 0
    bodies: list[str] = []

    def by_class(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in ERROR_CLASSES if getattr(self, name)}


class Wave(Part):
    """Good answers that came together: how many, and the median time after their start."""

    answers: Count
    at_seconds: float


class Rise(Part):
    """The mean response time of a step's first and last third, in seconds, of one that rose by
    more than chance explains."""

    first_seconds: float
    last_seconds: float


class StepGenerator(Part):
    """The driver during a step; null where it was too short or cannot be seen from here."""

    cpu: Annotated[float | None, Field(description="mean CPU cores used")] = None
    waiting: Annotated[
        float | None, Field(description="mean number of its threads that waited for a core")
    ] = None
    limited: bool | None = None


class Resources(Part):
    """What the target used during a step; null where the lab cannot see it."""

    cpu_share: Annotated[float | None, Field(description="mean, of the cores it may use")] = None
    memory_bytes: Annotated[Count | None, Field(description="peak resident memory")] = None
    open_files: Annotated[Count | None, Field(description="peak of open file descriptors")] = None
    worker_threads_share: Annotated[
        float | None, Field(description="peak of busy worker threads, of threads.max")
    ] = None


# Two counts of the same requests may differ by this share: where one phase follows another at once,
# a request may be begun in the one and answered in the other.
_SAME = 0.02


class Step(Part):
    """One judged stretch of load."""

    name: str
    phase: str
    variant: str | None = None
    repeat: Count = 1
    started: Moment
    ended: Moment
    offered_rate: Annotated[float | None, Field(description="null in a closed loop")] = None
    end_rate: Annotated[float | None, Field(description="at the end of a ramp")] = None
    arrival: Annotated[Arrival, Field(description="how an open loop's requests follow")] = (
        "constant"
    )
    scheduled: Annotated[
        Count | None,
        Field(
            description="requests that k6's schedule begins; null of Locust, where users wait for "
            "the target before they begin the next one, and where requests come by chance"
        ),
    ] = None
    started_rate: Annotated[
        float | None, Field(description="begun / window; null when all began in one moment")
    ]
    achieved_rate: Annotated[float | None, Field(description="completed / (window + drain)")]
    completed_rate: Annotated[
        float | None,
        Field(description="completed before the window's end / window; null of a spike"),
    ] = None
    goodput: Annotated[
        float | None,
        Field(
            description="good answers not above the loosest latency limit (in an imported report "
            "all good ones) / window; of a spike, whose window is a moment, / whole"
        ),
    ]
    requests: Count
    completed: Count
    dropped: Count
    failures: Count
    errors: Errors
    slow: Annotated[
        dict[str, Count],
        Field(description="good answers that missed an objective's latency limit, by objective"),
    ] = {}
    misses: Annotated[
        dict[str, Count],
        Field(description="failed, dropped and slow requests, by objective"),
    ] = {}
    dependence: Annotated[
        dict[str, float],
        Field(
            description="how many neighbouring requests count as one, by objective; empty: unknown"
        ),
    ] = {}
    rise: Annotated[Rise | None, Field(description="null: steady, or not known")] = None
    late_answers: Annotated[
        Count | None,
        Field(
            description="good answers that came later after the last one was due than the loosest "
            "latency limit (and a second) allows; null where nobody counted them"
        ),
    ] = None
    response_bytes_mean: float | None
    latency_seconds: Annotated[Latency, Field(description="of good answers")]
    latency_mean_seconds: Annotated[float | None, Field(description="of good answers")] = None
    latency_parts_seconds: LatencyParts | None = None
    lateness: Annotated[Lateness | None, Field(description="of the driver; null: not measured")] = (
        None
    )
    http_req_duration_seconds: Annotated[
        Latency | None,
        Field(description="k6's own figure of good answers: sending, waiting and receiving"),
    ] = None
    server_mean_seconds: Annotated[
        float | None,
        Field(
            description="of good answers by the target's own timer, which a request in the worker "
            "queue awaits"
        ),
    ] = None
    server_good: Annotated[
        Count | None,
        Field(
            description="good answers that the target's own timer counted; null where some are "
            "another phase's"
        ),
    ] = None
    server_rate: Annotated[
        float | None,
        Field(description="answers of any kind that the same timer counted in the window / window"),
    ] = None
    latency_with_failures_seconds: Annotated[
        Latency,
        Field(
            description="of all requests that were due: failed and dropped ones are infinite "
            "(schema 1: of those that were begun)"
        ),
    ]
    drain_seconds: float
    start_spread_seconds: Annotated[
        float | None, Field(description="between the first and the last start of a spike's users")
    ] = None
    waves: Annotated[
        list[Wave] | None, Field(description="from raw samples; null where none were kept")
    ] = None
    last_good_seconds: Annotated[
        float | None,
        Field(description="the last good answer since the start; null where no samples were kept"),
    ] = None
    workers_seen: Annotated[
        Count | None,
        Field(
            description="of a spike with a prediction: how many of the target's workers answered, "
            "by the times of good answers; null where these do not tell, or were not kept"
        ),
    ] = None
    raw_samples_missing: Annotated[
        int | None, Field(description="requests that InfluxDB lacks; null where none were kept")
    ] = None
    generator: StepGenerator = StepGenerator()
    component_cpu: Annotated[
        dict[str, float], Field(description="mean CPU cores used by the stack's components")
    ] = {}
    resources: Resources = Resources()
    slo: Annotated[
        list[ObjectiveText],
        Field(description="the objectives that it was judged by"),
    ] = []
    verdict: Verdict
    why: Annotated[str, Field(description="of a verdict that is not pass")] = ""

    @property
    def due(self) -> int:
        """Requests that were to be sent, dropped ones included."""
        return self.requests + self.dropped

    @property
    def spike(self) -> bool:
        """Whether all users began in one moment, with one request each."""
        return self.start_spread_seconds is not None

    @property
    def good(self) -> int:
        """Requests that got a good answer."""
        return self.requests - self.failures

    @property
    def success(self) -> float | None:
        """See success_share."""
        return success_share(self.requests, self.failures, self.dropped)

    @property
    def seconds(self) -> float:
        """From its start to its last answer."""
        return (self.ended - self.started).total_seconds()

    @property
    def outside_server_share(self) -> float | None:
        """What part of the mean latency the target's own timer does not see: network, proxies and
        queues. None where that timer did not count the same requests. (Means subtract; percentiles
        do not.)"""
        if not self.latency_mean_seconds or self.server_mean_seconds is None:
            return None
        if self.server_good is None or abs(self.server_good - self.good) > _SAME * self.good:
            return None
        return 1 - self.server_mean_seconds / self.latency_mean_seconds


class TargetRecord(Part):
    url: str
    addresses: Annotated[
        dict[str, str],
        Field(description="name:port → the address that it was looked up as, and loaded at"),
    ] = {}
    settings: Annotated[dict[str, int | bool | str], Field(description="asked for")]
    effective: Annotated[
        dict[str, float | None], Field(description="as the target exports them; null: unlimited")
    ]
    runtime: str | None
    image: str | None = None
    build: str | None = None
    compose: Annotated[
        list[str], Field(description="override files that it was started with: name@sha256:…")
    ] = []


class Connections(Part):
    """What the server side held; null where the lab cannot see the target's sockets."""

    predicted: Count | None = None
    established_peak: Count | None = None
    accept_queue_peak: Count | None = None
    accept_queue_limit: Count | None = None
    listen_overflows: Count | None = None
    policy: ConnectionPolicy


class Prediction(Part):
    """What a spike's users should see, from the target's settings alone, each figure with the
    least and the most that its tolerance allows: docs/connections.md, section 8."""

    established_peak: Count
    established_least: Count
    established_most: Count
    good: Count
    good_least: Count
    good_most: Count
    failed: Count
    failure_classes: Annotated[
        list[str], Field(description="in one of which each failed request should be")
    ] = []
    waves: Annotated[list[Wave], Field(description="empty where they are too many to list")] = []
    last_answer_seconds: Annotated[
        float | None, Field(description="since the start; null: no good answer")
    ] = None
    last_answer_least_seconds: float | None = None
    last_answer_most_seconds: float | None = None
    service_seconds: Annotated[
        float | None, Field(description="that a request keeps a worker; null: an older record")
    ] = None
    workers_least: Annotated[
        Count, Field(description="that answer; 0: they need not all be busy")
    ] = 0
    workers_most: Count = 0
    workers_busy_seconds: Annotated[
        float | None, Field(description="from the start until the first of them is free")
    ] = None


class QueueWait(Part):
    p50: float | None = None
    p99: float | None = None
    max: float | None = None


class Generator(Part):
    cpu: Annotated[float | None, Field(description="mean CPU cores used by the driver")] = None
    memory_bytes: Annotated[Count | None, Field(description="peak resident memory")] = None
    limited: bool | None = None
    versions: dict[str, str] = {}


class HostCores(Part):
    """The CPUs that driver and target were bound to, by number."""

    driver: list[Count]
    target: list[Count]


class Host(Part):
    kernel: str
    cpus: Count
    cores: Annotated[
        HostCores | None, Field(description="separate ones; null: driver and target share all")
    ] = None
    limits: dict[str, int | str | None]

    @property
    def driver_cpus(self) -> int:
        """How many CPUs the driver could use."""
        return len(self.cores.driver) if self.cores else self.cpus

    @property
    def target_cpus(self) -> int:
        """How many CPUs the target could use."""
        return len(self.cores.target) if self.cores else self.cpus


class RunRecord(ResultFile):
    """The whole record. `ended` is null while the run is going."""

    FILE = "run.json"
    NAME = "testid"

    schema_version: Annotated[int, Field(alias="schema")] = SCHEMA_VERSION
    testid: str
    plan: str
    labels: dict[str, str] = {}
    driver: str
    started: Moment
    ended: Moment | None = None
    valid: bool = False
    reasons: list[str] = []
    warnings: Annotated[
        list[str], Field(description="what is incomplete about a run that is valid")
    ] = []
    verdict: Verdict = "inconclusive"
    experiment: str | None = None
    values: Annotated[
        dict[str, str | int | float | bool],
        Field(description="of the plan's parameters, which the experiment set for this run"),
    ] = {}
    sinks: list[str] = []
    target: TargetRecord
    connections: Connections
    queue_wait_seconds: QueueWait = QueueWait()
    prediction: Annotated[
        Prediction | None, Field(description="of a spike on the lab's own target")
    ] = None
    latency_basis: Annotated[LatencyBasis, Field(description="which figure its latencies are")] = (
        "response time"
    )
    predicted_rate: Annotated[
        float | None,
        Field(description="requests/s of a rate plan that the target's worker threads can answer"),
    ] = None
    steps: list[Step] = []
    generator: Generator = Generator()
    host: Host

    @model_validator(mode="after")
    def _from_schema_1(self) -> Self:
        """A record of schema 1 as one of schema 2."""
        if self.schema_version == 1:
            _upgrade(self)
        return self

    @property
    def variant(self) -> str:
        """Its name; empty where the plan has none, or nothing was measured."""
        return next((step.variant for step in self.steps if step.variant), "")

    @property
    def imported(self) -> bool:
        """Whether another tool made the load."""
        return IMPORTED in self.labels


def _upgrade(record: RunRecord) -> None:
    """Schema 1's latencies were the driver's own, and those with failures were of the requests that
    were begun."""
    record.schema_version = SCHEMA_VERSION
    if record.imported:
        record.latency_basis = "report"
    else:
        record.latency_basis = "request" if record.driver == "locust" else "http_req_duration"
    for step in record.steps:
        if step.dropped:
            known = step.latency_with_failures_seconds
            step.latency_with_failures_seconds = with_drops(known, step.requests, step.dropped)
        if record.driver == "k6":
            step.scheduled = _scheduled(step)


def _scheduled(step: Step) -> int | None:
    """What k6 was to begin in the step's window."""
    if not step.offered_rate or not step.started_rate:
        return None
    due = step.offered_rate * step.requests / step.started_rate
    # A file may say anything.
    return round(due) if 0 <= due < 10**15 else None


def with_drops(known: Latency, requests: int, dropped: int) -> Latency:
    """Percentiles over begun and dropped requests, dropped ones infinite (None), where only some
    percentiles are known: the next higher one stands for those between, which errs against the
    target."""
    values = known.model_dump()
    moved = {}
    for key, share in QUANTILES.items():
        rank = math.ceil(share * (requests + dropped))
        above = [k for k, s in QUANTILES.items() if rank <= s * requests]
        moved[key] = values[above[0]] if above else None
    return Latency(**moved)


@dataclass(frozen=True)
class Totals:
    """Counts added up; `latency_seconds` (of good answers) has each percentile's highest, as
    percentiles cannot be averaged. `achieved_rate`: completed a second of the time in which steps
    ran, pauses left out. None: not measured."""

    requests: int
    completed: int
    failures: int
    dropped: int
    achieved_rate: float | None
    latency_seconds: Latency

    @classmethod
    def of(cls, steps: Sequence[Step]) -> Self:
        """The totals of a run's steps, of which there is at least one."""
        seconds = _seconds_under_load(steps)
        completed = sum(step.completed for step in steps)
        return cls(
            requests=sum(step.requests for step in steps),
            completed=completed,
            failures=sum(step.failures for step in steps),
            dropped=sum(step.dropped for step in steps),
            achieved_rate=completed / seconds if seconds else None,
            latency_seconds=_worst(step.latency_seconds for step in steps),
        )

    @property
    def success(self) -> float | None:
        """See success_share."""
        return success_share(self.requests, self.failures, self.dropped)


def success_share(requests: int, failures: int, dropped: int) -> float | None:
    """The share of the requests that were due, dropped ones included, that got a good answer
    (docs/judging.md); None where none was due."""
    due = requests + dropped
    return (requests - failures) / due if due else None


def _seconds_under_load(steps: Sequence[Step]) -> float:
    seconds, until = 0.0, -math.inf
    for step in sorted(steps, key=lambda step: step.started):
        started, ended = step.started.timestamp(), step.ended.timestamp()
        seconds += max(0.0, ended - max(started, until))
        until = max(until, ended)
    return seconds


def _worst(latencies: Iterable[Latency]) -> Latency:
    columns: dict[str, list[float]] = {}
    for latency in latencies:
        for name, seconds in latency.model_dump(exclude_none=True).items():
            columns.setdefault(name, []).append(seconds)
    return Latency(**{name: max(seconds) for name, seconds in columns.items()})
