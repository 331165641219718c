"""Whether a TCP port is free, and who holds it."""

import socket
from contextlib import suppress

import psutil

from spikelab.errors import LabError


def require_free(address: str, port: int, component: str, variable: str) -> None:
    """Raises LabError naming the port, its holder and the cure, if the port is taken."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
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
