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

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spikelab import paths
from spikelab.files import write_whole

SCHEMA_VERSION = 1
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


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Latency(_Strict):
    """Percentiles in seconds; null: no such answer, or infinite where failures count."""

    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    p99_9: float | None = None
    max: float | None = None


class Errors(_Strict):
    """Failed requests by class. `bodies`: a sample of wrong answers, as status and beginning."""

    dial_timeout: int = 0
    request_timeout: int = 0
    reset: int = 0
    refused: int = 0
    http_4xx: int = 0
    http_5xx: int = 0
    other: int = 0
    bodies: list[str] = []

    def by_class(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in ERROR_CLASSES if getattr(self, name)}


class Wave(_Strict):
    """Good answers that came together: how many, and the median time after their start."""

    answers: int
    at_seconds: float


class StepGenerator(_Strict):
    """The driver during a step; null where it was too short or cannot be seen from here."""

    cpu: Annotated[float | None, Field(description="mean CPU cores used")] = None
    waiting: Annotated[
        float | None, Field(description="mean number of its threads that waited for a core")
    ] = None
    limited: bool | None = None


class Resources(_Strict):
    """What the target used during a step; null where the lab cannot see it."""

    cpu_share: Annotated[float | None, Field(description="mean, of the cores it may use")] = None
    memory_bytes: Annotated[int | None, Field(description="peak resident memory")] = None
    open_files: Annotated[int | None, Field(description="peak of open file descriptors")] = None
    worker_threads_share: Annotated[
        float | None, Field(description="peak of busy worker threads, of threads.max")
    ] = None


class Step(_Strict):
    """One judged stretch of load."""

    name: str
    phase: str
    variant: str | None = None
    repeat: int = 1
    started: datetime
    ended: datetime
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
    requests: int
    completed: int
    dropped: int
    failures: int
    errors: Errors
    slow: Annotated[
        dict[str, int],
        Field(description="good answers that missed an objective's latency limit, by objective"),
    ] = {}
    late_answers: Annotated[
        int | None,
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
    slo: Annotated[list[str], Field(description="the objectives that it was judged by")] = []
    verdict: Verdict

    @property
    def outside_server_share(self) -> float | None:
        """What part of the mean latency the target's own timer does not see: network, proxies and
        queues. (Means subtract; percentiles do not.)"""
        if not self.latency_mean_seconds or self.server_mean_seconds is None:
            return None
        return 1 - self.server_mean_seconds / self.latency_mean_seconds


class TargetRecord(_Strict):
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


class Connections(_Strict):
    """What the server side held; null where the lab cannot see the target's sockets."""

    predicted: int | None = None
    established_peak: int | None = None
    accept_queue_peak: int | None = None
    accept_queue_limit: int | None = None
    listen_overflows: int | None = None
    policy: ConnectionPolicy


class Prediction(_Strict):
    """What a spike's users should see, from the target's settings alone, each figure with the
    least and the most that its tolerance allows: docs/connections.md, section 8."""

    established_peak: int
    established_least: int
    established_most: int
    good: int
    good_least: int
    good_most: int
    failed: int
    failure_classes: Annotated[
        list[str], Field(description="in one of which each failed request should be")
    ] = []
    waves: Annotated[list[Wave], Field(description="empty where they are too many to list")] = []
    last_answer_seconds: Annotated[
        float | None, Field(description="since the start; null: no good answer")
    ] = None
    last_answer_least_seconds: float | None = None
    last_answer_most_seconds: float | None = None


class QueueWait(_Strict):
    p50: float | None = None
    p99: float | None = None
    max: float | None = None


class Generator(_Strict):
    cpu: Annotated[float | None, Field(description="mean CPU cores used by the driver")] = None
    memory_bytes: Annotated[int | None, Field(description="peak resident memory")] = None
    limited: bool | None = None
    versions: dict[str, str] = {}


class HostCores(_Strict):
    """The CPUs that driver and target were bound to, by number."""

    driver: list[int]
    target: list[int]


class Host(_Strict):
    kernel: str
    cpus: int
    cores: Annotated[
        HostCores | None, Field(description="separate ones; null: driver and target share all")
    ] = None
    limits: dict[str, int | str | None]

    @property
    def driver_cpus(self) -> int:
        """How many CPUs the driver could use."""
        return len(self.cores.driver) if self.cores else self.cpus


class RunRecord(_Strict):
    """The whole record. `ended` is null while the run is going."""

    schema_version: Annotated[int, Field(alias="schema")] = SCHEMA_VERSION
    testid: str
    plan: str
    labels: dict[str, str] = {}
    driver: str
    started: datetime
    ended: datetime | None = None
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

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

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
        path = self.folder / "run.json"
        write_json(path, self.to_json())
        return path


def write_json(path: Path, data: object, mode: int = 0o644, indent: int | None = 2) -> None:
    """Writes a JSON file whole or not at all."""
    write_whole(path, json.dumps(data, indent=indent, ensure_ascii=False) + "\n", mode)


def all_records() -> Iterator[RunRecord]:
    """The readable records under results/, newest first (a testid sorts by its time)."""
    for path in sorted(paths.RESULTS.glob("*/run.json"), reverse=True):
        try:
            record = RunRecord.model_validate_json(path.read_bytes())
        except (ValidationError, OSError):
            continue
        # A record writes to the folder that its testid names: it must be its own.
        if record.testid == path.parent.name:
            yield record
