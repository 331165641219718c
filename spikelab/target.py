"""The lab's own target as it is seen from outside.

Right now, read directly (`TargetView`): settings, queues and sockets, and bringing it to rest.
While a run goes: its own timer of requests (`RequestTimer`). Afterwards, from Prometheus: what it
went through in a run (`connections`, `queue_wait`) and used in a step (`fill_resources`).
"""

import math
import time
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from threading import Event, Thread

from spikelab.console import say, warn
from spikelab.drivers.process import Usage
from spikelab.errors import LabError
from spikelab.machine import Cores
from spikelab.results.run import Connections, QueueWait, Resources, Step, now
from spikelab.settings import Endpoints, SettingValue, load_target_declaration
from spikelab.signals import OF_LAB_TARGET
from spikelab.stack.base import Runtime
from spikelab.stack.builds import TargetBuild
from spikelab.stores import SETTLE_SECONDS, Prometheus, Samples, first, read_page, read_samples

_IDLE_SECONDS = 30
_POLL_SECONDS = 0.25
# Tomcat's own count, a series for each connector: the management port is another Tomcat's.
_SERVED = "tomcat_global_request_seconds"


@dataclass(frozen=True)
class Activity:
    """What still goes on at the target; all zero when it is idle."""

    established: int
    accept_queue: int
    worker_queue: int
    busy_threads: int

    @property
    def idle(self) -> bool:
        return not (self.established or self.accept_queue or self.worker_queue or self.busy_threads)

    def __str__(self) -> str:
        return (
            f"{self.established} connections, {self.accept_queue} in the accept queue, "
            f"{self.worker_queue} requests waiting for a worker, {self.busy_threads} busy threads"
        )


@dataclass(frozen=True)
class ConnectionCapacity:
    """Connections that the server can hold: max-connections + the effective accept queue + 1."""

    predicted: int
    accept_queue_limit: int
    accept_count: int


_TIMER = "http_server_requests_seconds"


@dataclass(frozen=True)
class TimedRequests:
    """What the target's timer has counted of a path since the target's start; of the good ones also
    their seconds."""

    epoch_seconds: float
    answered: float = 0.0
    good: float = 0.0
    good_seconds: float = 0.0

    def plus(self, kind: str, value: float, *, good: bool) -> "TimedRequests":
        """With a sample of one of its series; `kind`: ``_count``, ``_sum`` or another."""
        if kind == "_count":
            more = value if good else 0.0
            return replace(self, answered=self.answered + value, good=self.good + more)
        if kind == "_sum" and good:
            return replace(self, good_seconds=self.good_seconds + value)
        return self

    def since(self, earlier: "TimedRequests") -> "TimedRequests":
        """The difference."""
        return TimedRequests(
            self.epoch_seconds - earlier.epoch_seconds,
            self.answered - earlier.answered,
            self.good - earlier.good,
            self.good_seconds - earlier.good_seconds,
        )

    @property
    def good_mean_seconds(self) -> float | None:
        return self.good_seconds / self.good if self.good >= 0.5 else None


def _is_good(status: str, expected: Collection[str]) -> bool:
    return status in expected or f"{status[:1]}xx" in expected


class TargetView:
    """Reads management ports and sockets exporters directly, without waiting for a scrape: of the
    target, and of its replicas where there are any, added up."""

    def __init__(self, endpoints: Endpoints) -> None:
        places = ((endpoints.management, endpoints.sockets), *endpoints.replicas)
        self._metrics = [f"{management}/actuator/prometheus" for management, _ in places]
        self._sockets = [f"{sockets}/metrics" for _, sockets in places]

    def activity(self) -> Activity:
        sockets = [read_samples(url, "port") for url in self._sockets]
        targets = [read_samples(url) for url in self._metrics]
        return Activity(
            established=_count(sockets, "sockets_established"),
            accept_queue=_count(sockets, "sockets_accept_queue_depth"),
            worker_queue=_count(targets, "tomcat_worker_queue_depth"),
            busy_threads=_count(targets, "tomcat_threads_busy_threads"),
        )

    def effective_settings(self) -> dict[str, float | None]:
        """Setting → value as the target exports it; None: unlimited."""
        return _settings(self._metrics[0])

    def settings_of_all(self) -> list[dict[str, float | None]]:
        """The same of the target and of each replica."""
        return [_settings(url) for url in self._metrics]

    def capacity(self) -> ConnectionCapacity | None:
        """From the settings and the kernel's limit alone; None while nothing listens."""
        settings = self.effective_settings()
        connections = settings.get("TOMCAT_MAX_CONNECTIONS")
        accept_count = settings.get("TOMCAT_ACCEPT_COUNT")
        limits = [
            first(read_samples(url, "port"), "sockets_accept_queue_limit") for url in self._sockets
        ]
        known = [limit for limit in limits if limit is not None]
        if len(known) < len(limits) or connections is None or accept_count is None:
            return None
        return ConnectionCapacity(
            predicted=int(sum(connections + limit + 1 for limit in known)),
            accept_queue_limit=int(sum(known)),
            accept_count=int(accept_count) * len(known),
        )

    def listen_overflows(self) -> int:
        return _count(
            [read_samples(url) for url in self._sockets], "sockets_listen_overflows_total"
        )

    def timed_requests(self, path: str, expected: Collection[str]) -> TimedRequests:
        """What its own timer has counted so far of `path`, as that timer names it; good answers are
        those with an `expected` status (``2xx``, ``302``). Raises LabError when it does not
        answer."""
        now = time.time()
        pages = [read_page(f"{url}?includedNames={_TIMER}") for url in self._metrics]
        counted = TimedRequests((now + time.time()) / 2)
        for sample in chain.from_iterable(pages):
            if sample.labels.get("uri") == path:
                good = _is_good(sample.labels.get("status", ""), expected)
                counted = counted.plus(sample.name.removeprefix(_TIMER), sample.value, good=good)
        return counted

    def served(self) -> int | None:
        """Requests that came to the traffic ports and have been answered since the targets' start;
        None where one does not answer, or does not count them."""
        pages = []
        with suppress(LabError):
            pages = [read_page(f"{url}?includedNames={_SERVED}") for url in self._metrics]
        counts = [
            [each.value for each in page if each.name == f"{_SERVED}_count"] for page in pages
        ]
        return int(sum(map(sum, counts))) if counts and all(counts) else None

    def start_time(self) -> float | None:
        """When the target's process started, in epoch seconds, of several the last; None when one
        does not answer."""
        found = []
        for url in self._metrics:
            with suppress(LabError):
                found.append(first(read_samples(url), "process_start_time_seconds"))
        started = [each for each in found if each is not None]
        return max(started) if len(started) == len(self._metrics) else None


# From one moment to another.
Stretch = tuple[datetime, datetime]


class RequestTimer:
    """Reads the target's own timer of a path all along, so that each step's part of it is known to
    a fraction of a second: Prometheus has it every two seconds."""

    def __init__(self, view: TargetView, path: str, expected: Collection[str]) -> None:
        self._read = partial(view.timed_requests, path, expected)
        self._readings: list[TimedRequests] = []
        self._done = Event()
        self._look()
        self._watcher = Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def stop(self) -> None:
        """After a last look."""
        if not self._done.is_set():
            self._done.set()
            self._watcher.join()
            self._look()

    def between(self, start: Stretch, end: Stretch) -> TimedRequests | None:
        """See timed_between."""
        return timed_between(self._readings, start, end)

    def _watch(self) -> None:
        while not self._done.wait(_TIMER_SECONDS):
            self._look()

    def _look(self) -> None:
        with suppress(LabError):
            self._readings.append(self._read())


_TIMER_SECONDS = 0.5


def timed_between(
    readings: Sequence[TimedRequests], start: Stretch, end: Stretch
) -> TimedRequests | None:
    """What was counted from a moment within `start` to one within `end`, both stretches in which
    nothing was asked (a moment, where one phase follows another at once). None where the timer was
    not read then, or began anew."""
    before, after = _reading_in(readings, start), _reading_in(readings, end)
    if before is None or after is None or after.good < before.good:
        return None
    return after.since(before)


def _reading_in(readings: Sequence[TimedRequests], stretch: Stretch) -> TimedRequests | None:
    """The last one from this stretch, else one from between those around it."""
    first, last = (moment.timestamp() for moment in stretch)
    inside = [each for each in readings if first <= each.epoch_seconds <= last]
    if inside:
        return inside[-1]
    place = bisect_left(readings, last, key=lambda each: each.epoch_seconds)
    if not 0 < place < len(readings):
        return None
    return _interpolated(readings[place - 1], readings[place], last)


def _interpolated(one: TimedRequests, other: TimedRequests, at: float) -> TimedRequests:
    share = (at - one.epoch_seconds) / (other.epoch_seconds - one.epoch_seconds)
    gained = other.since(one)
    return TimedRequests(
        at,
        one.answered + share * gained.answered,
        one.good + share * gained.good,
        one.good_seconds + share * gained.good_seconds,
    )


def _settings(url: str) -> dict[str, float | None]:
    return {
        name: None if math.isinf(value) else value
        for (metric, name), value in read_samples(url, "name").items()
        if metric == "tomcat_setting"
    }


def _count(samples: Sequence[Samples], name: str) -> int:
    return int(sum(first(each, name) or 0 for each in samples))


def prepare_target(
    runtime: Runtime,
    settings: Mapping[str, SettingValue],
    build: TargetBuild | None = None,
    cores: Cores | None = None,
    *,
    fresh: bool = False,
) -> TargetView:
    """Brings the lab's own target to these settings, this build (None: the lab's own), its CPUs
    and to rest; restarts it where it must, and in any case for a `fresh` start."""
    view = TargetView(runtime.endpoints())
    if not runtime.target_started_with(build, cores):
        say(f"restarting the target: {build or 'its own build'}, {cores or 'on all CPUs'}")
        runtime.restart_target(settings, build, cores)
        # Its replicas come and go with its build.
        view = TargetView(runtime.endpoints())
    elif fresh or _differs(view, settings):
        say("restarting the target with the run's settings")
        runtime.restart_target(settings, build, cores)
    elif not _becomes_idle(view):
        warn(f"the target is not idle after {_IDLE_SECONDS} s ({view.activity()}): restarting it")
        runtime.restart_target(settings, build, cores)
    if not _becomes_idle(view):
        raise LabError(
            f"the target does not become idle ({view.activity()}): stop what else sends load to it"
        )
    return view


def _differs(view: TargetView, settings: Mapping[str, SettingValue]) -> bool:
    try:
        return any(_differ(each, settings) for each in view.settings_of_all())
    except LabError:
        return True


def _differ(effective: Mapping[str, float | None], settings: Mapping[str, SettingValue]) -> bool:
    if settings["TOMCAT_VIRTUAL_THREADS"]:
        # Then the worker threads are unlimited, whatever the setting says.
        settings = {k: v for k, v in settings.items() if effective.get(k, 0.0) is not None}
    declared = load_target_declaration().settings
    return any(
        effective.get(name, math.nan) != declared[name].exported(value)
        for name, value in settings.items()
    )


def _becomes_idle(view: TargetView) -> bool:
    deadline = time.monotonic() + _IDLE_SECONDS
    activity = view.activity()
    if not activity.idle:
        say(f"waiting for an idle target: {activity}")
    while not activity.idle:
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
        activity = view.activity()
    return True


# The sockets are scraped every second; with fewer of them a peak may have gone unseen.
_ENOUGH_SCRAPES = 0.7


def connections(
    prometheus: Prometheus,
    started: datetime,
    ended: datetime,
    capacity: ConnectionCapacity | None,
    overflows: int | None,
    keep_alive: bool,
) -> Connections:
    """Prediction from settings and limit, measurement from the sockets alone."""
    window = _window(started, ended)
    established = f"sockets_established{{{OF_LAB_TARGET}}}"
    seen = prometheus.value(f"max(count_over_time({established}[{window}s]))", ended) or 0
    if seen < _ENOUGH_SCRAPES * (ended - started).total_seconds():
        raise LabError(f"Prometheus has only {seen:.0f} scrapes of this run's {window} seconds")
    return Connections(
        predicted=capacity.predicted if capacity else None,
        established_peak=_peak(prometheus, "sockets_established", window, ended),
        accept_queue_peak=_peak(prometheus, "sockets_accept_queue_depth", window, ended),
        accept_queue_limit=capacity.accept_queue_limit if capacity else None,
        listen_overflows=overflows,
        policy="keep-alive" if keep_alive else "close",
    )


def queue_wait(
    prometheus: Prometheus, started: datetime, ended: datetime, born: float | None
) -> QueueWait:
    """Waits in the worker queue; from a native histogram, so within its bucket's width (2.2 %).

    `born`: when the target's process started, in epoch seconds.
    """
    until = ended + timedelta(seconds=SETTLE_SECONDS)
    waits = _gained("tomcat_worker_queue_wait_seconds", started, until, born)
    quantiles = {
        name: prometheus.value(f"histogram_quantile({q}, {waits})", now())
        for name, q in (("p50", 0.5), ("p99", 0.99), ("max", 1))
    }
    return QueueWait(
        **{k: None if v is None or math.isnan(v) else round(v, 6) for k, v in quantiles.items()}
    )


def _gained(
    series: str, started: datetime, until: datetime, born: float | None, selector: str = ""
) -> str:
    """What a counter or histogram of the target gained in that time.

    What this process counted before is not in it; a process before it counted something else.
    """
    series = f"{series}{{{OF_LAB_TARGET}, {selector}}}"
    after = f"sum(last_over_time({series}[1m] @ {until.timestamp():.3f}))"
    age_ms = int((started.timestamp() - (born or 0)) * 1000)
    if age_ms <= 0:
        return after
    window = f"{min(age_ms, 60_000)}ms"
    before = f"sum(last_over_time({series}[{window}] @ {started.timestamp():.3f}))"
    return f"(({after} - {before}) or {after})"


def _window(started: datetime, ended: datetime) -> int:
    return math.ceil((ended - started).total_seconds()) + 2


def _peak(prometheus: Prometheus, series: str, window: int, ended: datetime) -> int | None:
    # Of all replicas together. Twice as often as it is scraped: no scrape lies between two steps.
    together = f"sum({series}{{{OF_LAB_TARGET}}})"
    value = prometheus.value(f"max_over_time({together}[{window}s:500ms])", ended)
    return None if value is None else int(value)


_SELECTOR = f'job="target", {OF_LAB_TARGET}'
_TARGET = f"{{{_SELECTOR}}}"
# A JVM's metrics count nanoseconds, those of most other programs seconds.
_CPU = (
    f"sum(rate(process_cpu_time_ns_total{_TARGET}[WINDOW])) / 1e9"
    f" or sum(rate(process_cpu_seconds_total{_TARGET}[WINDOW]))"
)
# Of each replica the lower one: a quota is infinite without a limit, and a JVM rounds it up.
_CORES = (
    f'sum(min by (instance) ({{__name__=~"system_cpu_count|cgroup_cpu_quota_cores", {_SELECTOR}}}))'
)
# What a JVM has taken from the system is the nearest that it says of itself.
_MEMORY = (
    f"max(max_over_time(sum(process_resident_memory_bytes{_TARGET})[WINDOW:1s]))"
    f" or max(max_over_time(sum(jvm_memory_committed_bytes{_TARGET})[WINDOW:1s]))"
)
_OPEN_FILES = (
    f"max(max_over_time(process_files_open_files{_TARGET}[WINDOW]))"
    f" or max(max_over_time(process_open_fds{_TARGET}[WINDOW]))"
)
# With virtual threads, or an executor of its own, Tomcat says -1.
_WORKERS = (
    f"max(max_over_time((tomcat_threads_busy_threads{_TARGET}"
    f" / (tomcat_threads_config_max_threads{_TARGET} > 0))[WINDOW:1s]))"
)


def fill_resources(
    steps: Sequence[Step], prometheus: Prometheus, targets: Sequence[Usage], cpus: int
) -> None:
    """Each step's resources, from the scrapes within it.

    `targets`: the processes, of the target and its replicas, as the lab itself sees them, which
    knows their resident memory; where it cannot be seen, their own word is taken. `cpus`: how many
    all of them share. A step needs two scrapes (4 s) to show its CPU.
    Raises LabError when Prometheus does not answer.
    """
    for step in steps:
        step.resources = _used(step, prometheus, targets, cpus)


def _used(step: Step, prometheus: Prometheus, targets: Sequence[Usage], cpus: int) -> Resources:
    window = f"{max(1, round(step.seconds * 1000))}ms"

    def seen(expression: str) -> float | None:
        return prometheus.value(expression.replace("WINDOW", window), step.ended)

    cpu, cores = seen(_CPU), seen(_CORES)
    memory = _resident(step, targets) or seen(_MEMORY)
    files, workers = seen(_OPEN_FILES), seen(_WORKERS)
    return Resources(
        cpu_share=None if cpu is None or not cores else round(cpu / min(cores, cpus), 4),
        memory_bytes=None if memory is None else int(memory),
        open_files=None if files is None else int(files),
        worker_threads_share=None if workers is None else round(workers, 4),
    )


def _resident(step: Step, targets: Sequence[Usage]) -> int | None:
    """The peaks of all together; None where one was not seen."""
    peaks = [usage.memory_between(step.started, step.ended) for usage in targets]
    known = [peak for peak in peaks if peak is not None]
    return sum(known) if known and len(known) == len(peaks) else None
