"""Whether a TCP port is free, and who holds it."""

import errno
import socket
from contextlib import suppress

import psutil

from spikelab.errors import LabError, UsageError


def require_free(address: str, port: int, component: str, variable: str) -> None:
    """Raises LabError naming the port, its holder and the cure, if the port is taken."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise UsageError(
                    f"LAB_BIND={address}: {component} cannot listen there ({error.strerror})"
                ) from error
            raise LabError(
                f"port {port} for {component} is taken{holder(port)}: stop that, or set "
                f"{variable} in compose/.env"
            ) from error


def holder(port: int) -> str:
    """`` by NAME (pid N)`` for the process that listens on a port; empty where it can't be seen."""
    with suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,):
                if connection.pid is None:
                    return ""
                return f" by {psutil.Process(connection.pid).name()} (pid {connection.pid})"
    return ""
