"""A driver's process: started apart from the terminal, watched, and stopped for certain."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import psutil

from spikelab.runtime import DriverCommand

_SAMPLE_SECONDS = 0.5
_STOP_SECONDS = 20
_PR_SET_PDEATHSIG = 1


@dataclass
class Usage:
    """CPU seconds and peak resident bytes of a driver, over `wall_seconds`."""

    cpu_seconds: float = 0.0
    memory_bytes: int = 0
    wall_seconds: float = 0.0

    @property
    def cores(self) -> float | None:
        return self.cpu_seconds / self.wall_seconds if self.wall_seconds else None


class DriverProcess:
    """Starts a command with its output in a log file and samples what it uses."""

    def __init__(self, command: DriverCommand, log: Path) -> None:
        with log.open("wb") as output:
            # In a session of its own: Ctrl-C reaches the lab, which stops it in order.
            self._process = subprocess.Popen(
                command.argv,
                env={**os.environ, **command.env},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_end_with_parent,  # noqa: PLW1509  # only a system call
            )
        self._command = command
        self.usage = Usage()
        self._started = time.monotonic()
        self._done = Event()
        self._watcher = Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def wait(self, on_tick: Callable[[], None], tick_seconds: float = 1.0) -> int:
        """Waits for the end, calling `on_tick` in between; returns the exit code."""
        while True:
            try:
                code = self._process.wait(tick_seconds)
            except subprocess.TimeoutExpired:
                on_tick()
                continue
            self._finish()
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
        self._finish()

    def _finish(self) -> None:
        self._done.set()
        self._watcher.join()

    def _watch(self) -> None:
        process: psutil.Process | None = None
        with suppress(psutil.Error):
            while not self._done.wait(_SAMPLE_SECONDS):
                process = process or self._driver()
                if process:
                    times = process.cpu_times()
                    self.usage.cpu_seconds = times.user + times.system
                    self.usage.memory_bytes = max(
                        self.usage.memory_bytes, process.memory_info().rss
                    )
                    self.usage.wall_seconds = time.monotonic() - self._started

    def _driver(self) -> psutil.Process | None:
        """The driver; None while its container starts or where it can't be seen from here."""
        if not self._command.pid_argv:
            return psutil.Process(self._process.pid)
        said = subprocess.run(self._command.pid_argv, capture_output=True, text=True, check=False)
        pid = int(said.stdout) if said.stdout.strip().isdigit() else 0
        return psutil.Process(pid) if pid and psutil.pid_exists(pid) else None


def _end_with_parent() -> None:
    """Linux: the driver ends when the lab is killed, so that no load goes on unattended."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
