"""The run record, results/<testid>/run.json: every figure of a run and what it was made with.

`docs/run.schema.json` is generated from these models (`python -m spikelab.schema`; `./lab test`
fails when it is out of date).
Durations are in seconds, rates per second, times ISO 8601 in UTC.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from spikelab import paths
from spikelab.files import write_whole
from spikelab.kept import Count, Kept, Moment, plain, read_kept
from spikelab.slo import objective_text

SCHEMA_VERSION = 1
FILE = "run.json"
# The label of a run that `./lab import` has read from another tool's report.
IMPORTED = "imported"
Verdict = Literal["pass", "fail", "inconclusive"]
ConnectionPolicy = Literal["keep-alive", "close"]
ERROR_CLASSES = (
    "dial_timeout",
    "request_timeout",
    "reset",
    "refused",
    "http_4xx",
    "http_5xx",
    "other",
)


# What the percentiles of `Latency` are.
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999, "max": 1.0}


def now() -> datetime:
    return datetime.now(UTC)


class Latency(Kept):
    """Percentiles in seconds; null: no such answer, or infinite where failures count."""

    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    p99_9: float | None = None
    max: float | None = None


class Errors(Kept):
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


class Wave(Kept):
    """Good answers that came together: how many, and the median time after their start."""

    answers: Count
    at_seconds: float


class StepGenerator(Kept):
    """The driver during a step; null where it was too short or cannot be seen from here."""

    cpu: Annotated[float | None, Field(description="mean CPU cores used")] = None
    waiting: Annotated[
        float | None, Field(description="mean number of its threads that waited for a core")
    ] = None
    limited: bool | None = None


class Resources(Kept):
    """What the target used during a step; null where the lab cannot see it."""

    cpu_share: Annotated[float | None, Field(description="mean, of the cores it may use")] = None
    memory_bytes: Annotated[Count | None, Field(description="peak resident memory")] = None
    open_files: Annotated[Count | None, Field(description="peak of open file descriptors")] = None
    worker_threads_share: Annotated[
        float | None, Field(description="peak of busy worker threads, of threads.max")
    ] = None


class Step(Kept):
    """One judged stretch of load."""

    name: str
    phase: str
    variant: str | None = None
    repeat: Count = 1
    started: Moment
    ended: Moment
    offered_rate: Annotated[float | None, Field(description="null in a closed loop")] = None
    started_rate: Annotated[
        float | None, Field(description="begun / window; null when all began in one moment")
    ]
    achieved_rate: Annotated[float | None, Field(description="completed / (window + drain)")]
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
    late_answers: Annotated[
        Count | None,
        Field(
            description="good answers that came later after the last one was due than the loosest "
            "latency limit (and a second) allows; null where nobody counted them"
        ),
    ] = None
    response_bytes_mean: float | None
    latency_seconds: Latency
    latency_mean_seconds: Annotated[float | None, Field(description="of good answers")] = None
    server_mean_seconds: Annotated[
        float | None,
        Field(description="by the target's own timer, which a request in the worker queue awaits"),
    ] = None
    latency_with_failures_seconds: Latency
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
    raw_samples_missing: Annotated[
        int | None, Field(description="requests that InfluxDB lacks; null where none were kept")
    ] = None
    generator: StepGenerator = StepGenerator()
    component_cpu: Annotated[
        dict[str, float], Field(description="mean CPU cores used by the stack's components")
    ] = {}
    resources: Resources = Resources()
    slo: Annotated[
        list[Annotated[str, AfterValidator(objective_text)]],
        Field(description="the objectives that it was judged by"),
    ] = []
    verdict: Verdict

    @property
    def outside_server_share(self) -> float | None:
        """What part of the mean latency the target's own timer does not see: network, proxies and
        queues. (Means subtract; percentiles do not.)"""
        if not self.latency_mean_seconds or self.server_mean_seconds is None:
            return None
        return 1 - self.server_mean_seconds / self.latency_mean_seconds


class TargetRecord(Kept):
    url: str
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


class Connections(Kept):
    """What the server side held; null where the lab cannot see the target's sockets."""

    predicted: Count | None = None
    established_peak: Count | None = None
    accept_queue_peak: Count | None = None
    accept_queue_limit: Count | None = None
    listen_overflows: Count | None = None
    policy: ConnectionPolicy


class Prediction(Kept):
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


class QueueWait(Kept):
    p50: float | None = None
    p99: float | None = None
    max: float | None = None


class Generator(Kept):
    cpu: Annotated[float | None, Field(description="mean CPU cores used by the driver")] = None
    memory_bytes: Annotated[Count | None, Field(description="peak resident memory")] = None
    limited: bool | None = None
    versions: dict[str, str] = {}


class HostCores(Kept):
    """The CPUs that driver and target were bound to, by number."""

    driver: list[Count]
    target: list[Count]


class Host(Kept):
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


class RunRecord(Kept):
    """The whole record. `ended` is null while the run is going."""

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
    predicted_rate: Annotated[
        float | None,
        Field(description="requests/s of a rate plan that the target's worker threads can answer"),
    ] = None
    steps: list[Step] = []
    generator: Generator = Generator()
    host: Host

    @property
    def imported(self) -> bool:
        """Whether another tool made the load."""
        return IMPORTED in self.labels

    @property
    def folder(self) -> Path:
        return paths.RESULTS / self.testid

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True)

    def save(self) -> Path:
        """Writes run.json whole or not at all; returns its path."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / FILE
        write_json(path, self.to_json())
        return path


def write_json(path: Path, data: object, mode: int = 0o644, indent: int | None = 2) -> None:
    """Writes a JSON file whole or not at all."""
    write_whole(path, json_text(data, indent), mode)


def json_text(data: object, indent: int | None = 2) -> str:
    """As the lab's JSON files have it."""
    return json.dumps(data, indent=indent, ensure_ascii=False) + "\n"


def all_records() -> Iterator[RunRecord]:
    """The readable records under results/, newest first (a testid sorts by its time)."""
    for path in sorted(paths.RESULTS.glob("*/run.json"), reverse=True):
        if (record := read_record(path.parent.name)) is not None:
            yield record


def read_record(testid: str) -> RunRecord | None:
    """A run's record by its testid; None where there is none that can be read."""
    record = read_kept(RunRecord, paths.RESULTS / testid, FILE) if plain(testid) else None
    # A record writes to the folder that its testid names: it must be its own.
    return record if record and record.testid == testid else None
