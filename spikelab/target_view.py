"""The lab's own target as it is seen from outside: its settings, queues and sockets, right now."""

import math
import time
from collections.abc import Mapping, Sequence
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

    def capacity(self) -> Capacity | None:
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
        return Capacity(
            predicted=int(sum(connections + limit + 1 for limit in known)),
            accept_queue_limit=int(sum(known)),
            accept_count=int(accept_count) * len(known),
        )

    def listen_overflows(self) -> int:
        return _count(
            [read_samples(url) for url in self._sockets], "sockets_listen_overflows_total"
        )

    def start_time(self) -> float | None:
        """When the target's process started, in epoch seconds, of several the last; None when one
        does not answer."""
        found = []
        for url in self._metrics:
            with suppress(LabError):
                found.append(first(read_samples(url), "process_start_time_seconds"))
        started = [each for each in found if each is not None]
        return max(started) if len(started) == len(self._metrics) else None


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


def _differs(view: TargetView, settings: Mapping[str, Value]) -> bool:
    try:
        return any(_differ(each, settings) for each in view.settings_of_all())
    except LabError:
        return True


def _differ(effective: Mapping[str, float | None], settings: Mapping[str, Value]) -> bool:
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
