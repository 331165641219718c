"""A driver's process: started apart from the terminal, watched, and stopped for certain."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from spikelab.runtime import DriverCommand
from spikelab.usage import Usage

_STOP_SECONDS = 20
_PR_SET_PDEATHSIG = 1


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
        command.argv, env={**os.environ, **command.env}, capture_output=True, text=True, check=False
    ).stdout


def _before_exec(cpus: Sequence[int]) -> None:
    """Linux: the driver ends when the lab is killed, so that no load goes on unattended; and it is
    bound to its CPUs, as are all threads and processes that it starts."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
        if cpus:
            os.sched_setaffinity(0, cpus)
