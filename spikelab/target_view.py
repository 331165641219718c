"""The lab's own target as it is seen from outside: its settings, queues and sockets, right now."""

import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from spikelab.console import say, warn
from spikelab.cores import Cores
from spikelab.errors import LabError
from spikelab.exposition import Samples, first, read_samples
from spikelab.runtime import Endpoints, Runtime, TargetBuild
from spikelab.target_settings import Value, load_target_declaration

_IDLE_SECONDS = 30
_POLL_SECONDS = 0.25


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
class Capacity:
    """Connections that the server can hold: max-connections + the effective accept queue + 1."""

    predicted: int
    accept_queue_limit: int
    accept_count: int


class TargetView:
    """Reads the management port and the sockets exporter directly, without waiting for a scrape."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._metrics = f"{endpoints.management}/actuator/prometheus"
        self._sockets = f"{endpoints.sockets}/metrics"

    def activity(self) -> Activity:
        sockets = read_samples(self._sockets, "port")
        target = read_samples(self._metrics)
        return Activity(
            established=_count(sockets, "sockets_established"),
            accept_queue=_count(sockets, "sockets_accept_queue_depth"),
            worker_queue=_count(target, "tomcat_worker_queue_depth"),
            busy_threads=_count(target, "tomcat_threads_busy_threads"),
        )

    def effective_settings(self) -> dict[str, float | None]:
        """Setting → value as the target exports it; None: unlimited."""
        samples = read_samples(self._metrics, "name")
        return {
            name: None if math.isinf(value) else value
            for (metric, name), value in samples.items()
            if metric == "tomcat_setting"
        }

    def capacity(self) -> Capacity | None:
        """From the settings and the kernel's limit alone; None while nothing listens."""
        limit = first(read_samples(self._sockets, "port"), "sockets_accept_queue_limit")
        settings = self.effective_settings()
        connections = settings.get("TOMCAT_MAX_CONNECTIONS")
        accept_count = settings.get("TOMCAT_ACCEPT_COUNT")
        if limit is None or connections is None or accept_count is None:
            return None
        return Capacity(int(connections + limit + 1), int(limit), int(accept_count))

    def listen_overflows(self) -> int:
        return _count(read_samples(self._sockets), "sockets_listen_overflows_total")

    def start_time(self) -> float | None:
        """When the target's process started, in epoch seconds; None when it does not answer."""
        with suppress(LabError):
            return first(read_samples(self._metrics), "process_start_time_seconds")
        return None


def _count(samples: Samples, name: str) -> int:
    return int(first(samples, name) or 0)


def prepare_target(
    runtime: Runtime,
    settings: Mapping[str, Value],
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


def _differs(view: TargetView, settings: Mapping[str, Value]) -> bool:
    try:
        effective = view.effective_settings()
    except LabError:
        return True
    if settings["TOMCAT_VIRTUAL_THREADS"]:
        # Then the worker threads are unlimited, whatever the setting says.
        settings = {k: v for k, v in settings.items() if effective.get(k, 0.0) is not None}
    declared = load_target_declaration().settings
    return any(
        effective.get(name) != declared[name].exported(value) for name, value in settings.items()
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
