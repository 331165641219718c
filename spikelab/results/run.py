"""The run record, results/<testid>/run.json: every figure of a run and what it was made with.

`docs/run.schema.json` is generated from these models (`python -m docs.schemas`; `./lab test`
fails when it is out of date).
Durations are in seconds, rates per second, times ISO 8601 in UTC.
"""

# - Files that the lab keeps under results/: what holds for all of them, and how one is read.
#   They may come from another machine, or be damaged: a value that no figure, table or page can
#   show is refused where the file is read.
# - Files that are written whole or not at all.
# - A run's figures over all of its judged steps.
import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from spikelab import paths
from spikelab.objectives import ObjectiveText, Verdict

Scalar = str | int | float | bool


SCHEMA_VERSION = 1
FILE = "run.json"
# The label of a run that `./lab import` has read from another tool's report.
IMPORTED = "imported"
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


def now() -> datetime:
    return datetime.now(UTC)


class Kept(BaseModel):
    """A part of such a file: no unknown key, and no number that JSON does not have."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, allow_inf_nan=False)


class Latency(Kept):
    """Percentiles in seconds; null: no such answer, or infinite where failures count."""

    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    p99_9: float | None = None
    max: float | None = None


# Below 2^53, so that it is exact as a float too.
Count = Annotated[int, Field(ge=0, le=10**15)]


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


# Wider than the times of reports that are taken, from which others are reckoned.
Moment = Annotated[
    AwareDatetime, Field(ge=datetime(1900, 1, 1, tzinfo=UTC), le=datetime(2300, 1, 1, tzinfo=UTC))
]


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
        list[ObjectiveText],
        Field(description="the objectives that it was judged by"),
    ] = []
    verdict: Verdict

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
    def variant(self) -> str:
        """Its name; empty where the plan has none, or nothing was measured."""
        return next((step.variant for step in self.steps if step.variant), "")

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


K = TypeVar("K", bound=BaseModel)


def read_kept(model: type[K], folder: Path, file: str) -> K | None:
    """The file in that folder; None where there is none that can be read."""
    try:
        return model.model_validate_json((folder / file).read_bytes())
    except (ValueError, OSError):
        # A ValueError that is none of the model's: no file can have this name.
        return None


def plain(name: str) -> bool:
    """Whether it is the name of a folder under results/, and leads nowhere else."""
    return name not in ("", ".", "..") and Path(name).name == name


def write_whole(path: Path, text: str, mode: int = 0o644) -> None:
    """Writes a file by way of a temporary one, so that no reader sees half of it.

    A symlink stays one: what it points to is written. What is no regular file (a device, a pipe)
    is written to as it is. Raises OSError.
    """
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    real = path.resolve()
    temporary = real.with_name(f".{real.name}.{os.getpid()}")
    try:
        temporary.touch(mode)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(real)
    finally:
        temporary.unlink(missing_ok=True)


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
