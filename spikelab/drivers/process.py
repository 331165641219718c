"""A driver's process: started apart from the terminal, watched, and stopped for certain; and what
processes use over time: CPU, memory, and the time they were ready but had no CPU."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Event, Thread

import psutil

from spikelab.stack.base import DriverCommand

_STOP_SECONDS = 20
_PR_SET_PDEATHSIG = 1


class DriverProcess:
    """Starts a command with its output in a log file and samples what it uses."""

    def __init__(self, command: DriverCommand, log: Path) -> None:
        with log.open("wb") as output:
            # In a session of its own: Ctrl-C reaches the lab, which stops it in order.
            self._process = subprocess.Popen(
                command.argv,
                env=dict(command.env),
                cwd=command.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: _before_exec(command.cpus),  # noqa: PLW1509  # system calls alone
            )
        self._command = command
        self.usage = Usage(self._driver)

    def wait(self, on_tick: Callable[[], None], tick_seconds: float = 1.0) -> int:
        """Waits for the end, calling `on_tick` in between; returns the exit code."""
        while True:
            try:
                code = self._process.wait(tick_seconds)
            except subprocess.TimeoutExpired:
                on_tick()
                continue
            self.usage.stop()
            return code

    def stop(self) -> None:
        """Asks for an orderly end; ends it by force when that takes too long."""
        for number, patience in ((signal.SIGINT, _STOP_SECONDS), (signal.SIGKILL, 5)):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(patience)
                break
        if self._command.remove_argv:
            subprocess.run(self._command.remove_argv, capture_output=True, check=False)
        self.usage.stop()

    def _driver(self) -> psutil.Process | None:
        """The driver; None while its container starts or where it can't be seen from here."""
        if not self._command.pid_argv:
            return psutil.Process(self._process.pid)
        said = subprocess.run(self._command.pid_argv, capture_output=True, text=True, check=False)
        pid = int(said.stdout) if said.stdout.strip().isdigit() else 0
        return psutil.Process(pid) if pid and psutil.pid_exists(pid) else None


def was_killed(code: int) -> bool:
    """Whether a signal ended the process, or SIGKILL a container's first one."""
    return code < 0 or code == 128 + signal.SIGKILL


def ask(command: DriverCommand) -> str:
    """What a command prints, e.g. its version."""
    return subprocess.run(
        command.argv,
        env=dict(command.env),
        cwd=command.folder,
        capture_output=True,
        text=True,
        check=False,
    ).stdout


def _before_exec(cpus: Sequence[int]) -> None:
    """Linux: the driver ends when the lab is killed, so that no load goes on unattended; and it is
    bound to its CPUs, as are all threads and processes that it starts."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
        if cpus:
            os.sched_setaffinity(0, cpus)


_SAMPLE_SECONDS = 0.5


@dataclass(frozen=True)
class UsageSample:
    """Totals since a process' start. `waited_seconds` is of all its threads: Linux alone has it."""

    epoch_seconds: float
    cpu_seconds: float
    waited_seconds: float
    memory_bytes: int


@dataclass(frozen=True)
class Use:
    """Mean CPU cores over a stretch, and the mean number of threads that waited for a core."""

    cores: float
    waiting: float


class Usage:
    """Samples a process and its children in the background until it is stopped or gone.

    Without `waits` the threads are left alone: looking at some thousand of them takes its time.
    """

    def __init__(self, find: Callable[[], psutil.Process | None], *, waits: bool = True) -> None:
        self._find = find
        self._waits = waits
        self.samples: list[UsageSample] = []
        self._done = Event()
        self._watcher = Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def stop(self) -> None:
        self._done.set()
        self._watcher.join()

    @property
    def memory_bytes(self) -> int:
        """The most resident memory that was seen."""
        return max((sample.memory_bytes for sample in self.samples), default=0)

    def memory_between(self, start: datetime, end: datetime) -> int | None:
        """The most resident memory between two moments; None where no sample lies in it."""
        first, last = start.timestamp(), end.timestamp()
        inside = (s.memory_bytes for s in self.samples if first <= s.epoch_seconds <= last)
        return max(inside, default=None)

    def between(self, start: datetime, end: datetime) -> Use | None:
        """Use between two moments; None where fewer than two samples lie in it."""
        return use_between(self.samples, start.timestamp(), end.timestamp())

    def overall(self) -> Use | None:
        return _use(self.samples[0], self.samples[-1]) if len(self.samples) > 1 else None

    def latest(self) -> Use | None:
        """Over the last second or so."""
        return _use(self.samples[-3], self.samples[-1]) if len(self.samples) > 2 else None

    def _watch(self) -> None:
        process: psutil.Process | None = None
        while not self._done.wait(_SAMPLE_SECONDS):
            with suppress(psutil.Error, OSError):
                process = process or self._find()
                if process:
                    self.samples.append(_sample(process, self._waits))


def use_between(samples: Sequence[UsageSample], start: float, end: float) -> Use | None:
    """Use over the samples nearest to a stretch, in epoch seconds, from inside."""
    times = [sample.epoch_seconds for sample in samples]
    inside = samples[bisect_left(times, start) : bisect_left(times, end)]
    return _use(inside[0], inside[-1]) if len(inside) > 1 else None


def _use(first: UsageSample, last: UsageSample) -> Use:
    seconds = last.epoch_seconds - first.epoch_seconds
    return Use(
        # The count of a child that has ended is gone with it.
        cores=max(0.0, last.cpu_seconds - first.cpu_seconds) / seconds,
        waiting=max(0.0, last.waited_seconds - first.waited_seconds) / seconds,
    )


def _sample(process: psutil.Process, waits: bool) -> UsageSample:
    """Raises psutil.Error when the process, rather than a child of it, is gone."""
    total = _of_one(process, waits)
    for child in process.children(recursive=True):
        with suppress(psutil.Error):
            total = [a + b for a, b in zip(total, _of_one(child, waits), strict=True)]
    cpu, waited, memory = total
    return UsageSample(time.time(), cpu, waited, int(memory))


def _of_one(process: psutil.Process, waits: bool) -> list[float]:
    times = process.cpu_times()
    waited = _waited_seconds(process.pid) if waits else 0.0
    return [times.user + times.system, waited, float(process.memory_info().rss)]


def _waited_seconds(pid: int) -> float:
    """Run-queue wait of all threads: the second figure of /proc/<pid>/task/<tid>/schedstat, ns."""
    waited = 0
    for stat in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError, IndexError, ValueError):
            waited += int(stat.read_text().split()[1])
    return waited / 1e9
