"""supervisord, started and asked over its own XML-RPC interface on a Unix socket, and the programs
that one which died has left: nobody would stop or restart them any more."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPException
from typing import Any
from xmlrpc.client import Fault, ServerProxy

import psutil
from supervisor.xmlrpc import Faults, SupervisorTransport

from spikelab import paths
from spikelab.errors import LabError

_CONFIGURATION = paths.ROOT / "host" / "supervisord.conf"
_SOCKET = paths.STATE / "supervisor.sock"
_PID_FILE = paths.STATE / "supervisord.pid"
# sockaddr_un.sun_path holds 108 bytes, and supervisord binds a name with its pid appended first.
_LONGEST_SOCKET_PATH = 97
_PATIENCE_SECONDS = 5
_TRANSPORT_ERRORS = (OSError, HTTPException)


class Supervisor:
    """The lab's own supervisord."""

    @property
    def _proxy(self) -> Any:
        # Made anew for each call: the transport cannot be used again after an error.
        transport = SupervisorTransport(None, None, f"unix://{_SOCKET}")
        return ServerProxy("http://127.0.0.1", transport=transport)

    def running(self) -> bool:
        try:
            return bool(self._proxy.supervisor.getState()["statename"] == "RUNNING")
        except (*_TRANSPORT_ERRORS, Fault):
            return False

    def start(self, env: Mapping[str, str]) -> None:
        """Starts the daemon; its children inherit `env` and the highest open-file limit."""
        if len(str(_SOCKET)) > _LONGEST_SOCKET_PATH:
            raise LabError(
                f"the path of this checkout is too long for a Unix socket ({len(str(_SOCKET))} of "
                f"{_LONGEST_SOCKET_PATH} characters with .lab/run/supervisor.sock): move it"
            )
        result = subprocess.run(
            [sys.executable, "-m", "supervisor.supervisord", "-c", str(_CONFIGURATION)],
            env={**os.environ, **env},
            preexec_fn=_raise_open_files,
            capture_output=True,
            text=True,
            cwd=paths.ROOT,
            check=False,
        )
        deadline = time.monotonic() + 10
        while not self.running():
            if result.returncode or time.monotonic() > deadline:
                said = (result.stderr or result.stdout).strip().splitlines()
                reason = said[-1] if said else "see .lab/log/supervisord.log"
                raise LabError(f"supervisord did not start: {reason}")
            time.sleep(0.05)

    def shutdown(self) -> None:
        """Stops every program, then the daemon, and waits until it is gone."""
        pid = int(_PID_FILE.read_text()) if _PID_FILE.exists() else None
        with suppress(*_TRANSPORT_ERRORS):
            self._proxy.supervisor.shutdown()
        deadline = time.monotonic() + 30
        while pid and psutil.pid_exists(pid) and time.monotonic() < deadline:
            time.sleep(0.05)

    def info(self) -> dict[str, dict[str, Any]]:
        """Program name → supervisor's process information; empty where it does not run."""
        try:
            found = self._proxy.supervisor.getAllProcessInfo()
        except (*_TRANSPORT_ERRORS, Fault):
            return {}
        return {process["name"]: process for process in found}

    def start_program(self, name: str) -> None:
        """Asks for a start; one that is running already is left alone."""
        self._ask(self._proxy.supervisor.startProcess, name, Faults.ALREADY_STARTED)

    def stop_program(self, name: str) -> None:
        """Stops a program and waits for it; one that is not running is left alone."""
        self._ask(self._proxy.supervisor.stopProcess, name, Faults.NOT_RUNNING)

    @staticmethod
    def _ask(method: Any, name: str, harmless: int) -> None:
        # A start returns at once; health is awaited elsewhere, for all programs together.
        waits = harmless == Faults.NOT_RUNNING
        try:
            method(name, waits)
        except Fault as fault:
            if fault.faultCode != harmless:
                raise LabError(f"{name}: supervisor says {fault.faultString}") from fault


def orphans() -> list[psutil.Process]:
    """This lab's processes, found by the state folder in the environment they inherited."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("LAB_STATE") == str(paths.STATE):
                found.append(process)
    return found


def stop(processes: list[psutil.Process]) -> None:
    """Ends them, by force where asking does not help."""
    for process in processes:
        with suppress(psutil.Error):
            process.terminate()
    _, left = psutil.wait_procs(processes, _PATIENCE_SECONDS)
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, _PATIENCE_SECONDS)


def _raise_open_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
