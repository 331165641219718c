"""supervisord, started and asked over its own XML-RPC interface on a Unix socket."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any
from xmlrpc.client import Fault, ServerProxy

from supervisor.xmlrpc import Faults, SupervisorTransport

from spikelab import paths
from spikelab.errors import LabError

CONFIGURATION = paths.ROOT / "host" / "supervisord.conf"
SOCKET = paths.STATE / "supervisor.sock"
PID_FILE = paths.STATE / "supervisord.pid"
# sockaddr_un.sun_path holds 108 bytes, and supervisord binds a name with its pid appended first.
_LONGEST_SOCKET_PATH = 97
_TRANSPORT_ERRORS = (OSError, HTTPException)


class Supervisor:
    """The lab's own supervisord."""

    def __init__(self, socket: Path = SOCKET) -> None:
        self._socket = socket

    @property
    def _proxy(self) -> Any:
        # Made anew for each call: the transport cannot be used again after an error.
        transport = SupervisorTransport(None, None, f"unix://{self._socket}")
        return ServerProxy("http://127.0.0.1", transport=transport)

    def running(self) -> bool:
        try:
            return bool(self._proxy.supervisor.getState()["statename"] == "RUNNING")
        except (*_TRANSPORT_ERRORS, Fault):
            return False

    def start(self, env: Mapping[str, str]) -> None:
        """Starts the daemon; its children inherit `env` and the highest open-file limit."""
        if len(str(SOCKET)) > _LONGEST_SOCKET_PATH:
            raise LabError(
                f"the path of this checkout is too long for a Unix socket ({len(str(SOCKET))} of "
                f"{_LONGEST_SOCKET_PATH} characters with .lab/run/supervisor.sock): move it"
            )
        result = subprocess.run(
            [sys.executable, "-m", "supervisor.supervisord", "-c", str(CONFIGURATION)],
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
        pid = int(PID_FILE.read_text()) if PID_FILE.exists() else None
        with suppress(*_TRANSPORT_ERRORS):
            self._proxy.supervisor.shutdown()
        deadline = time.monotonic() + 30
        while pid and _alive(pid) and time.monotonic() < deadline:
            time.sleep(0.05)

    def info(self) -> dict[str, dict[str, Any]]:
        """Program name → supervisor's process information."""
        return {process["name"]: process for process in self._proxy.supervisor.getAllProcessInfo()}

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


def _raise_open_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
