"""Facts of this machine that decide what a load test can show."""

import os
import platform
import resource
from collections.abc import Mapping
from pathlib import Path

import psutil

from spikelab.cores import Cores
from spikelab.record import Host, HostCores

_SYSCTLS = {
    "somaxconn": "net/core/somaxconn",
    "port_range": "net/ipv4/ip_local_port_range",
    "tcp_syn_retries": "net/ipv4/tcp_syn_retries",
    # Decides when a dropped SYN is sent again: 1, 2, 3, 4, 5, 7 … s or 1, 3, 7, 15 … s.
    "tcp_syn_linear_timeouts": "net/ipv4/tcp_syn_linear_timeouts",
}
# Sockets, files and pipes that a driver needs beside one socket a user.
_RESERVED_FILES = 500
# k6 2.2 with one request in flight and both sinks; k6/README.md has the measurements.
USER_BYTES = 220_000


def sysctl(path: str) -> str | None:
    """A kernel setting's text, e.g. of ``net/core/somaxconn``; None where there is none."""
    try:
        return " ".join(Path("/proc/sys", path).read_text().split())
    except OSError:
        return None


def open_files() -> int:
    """The most files that a process may open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def ephemeral_ports() -> int | None:
    """How many connections one client address can open to one server port."""
    text = sysctl(_SYSCTLS["port_range"])
    if text is None:
        return None
    low, high = map(int, text.split())
    return high - low + 1


def most_users() -> list[tuple[int, str]]:
    """(users, reason) for each limit of this machine on the users of one driver process."""
    limits = [
        (open_files() - _RESERVED_FILES, f"{open_files():,} open files a process"),
        (
            psutil.virtual_memory().available // USER_BYTES,
            f"{psutil.virtual_memory().available / 2**30:.1f} GiB of free memory",
        ),
    ]
    ports = ephemeral_ports()
    if ports is not None:
        limits.append((ports, f"{ports:,} local ports"))
    return sorted(limits)


def host_record(
    cores: Cores | None = None, own: Mapping[str, int | str | None] | None = None
) -> Host:
    """`own`: limits that driver and target have of their own, other than this machine's."""
    limits: dict[str, int | str | None] = {"open_files": open_files()}
    for name, path in _SYSCTLS.items():
        text = sysctl(path)
        limits[name] = int(text) if text is not None and text.isdigit() else text
    return Host(
        kernel=platform.release(),
        cpus=os.cpu_count() or 1,
        cores=HostCores(driver=list(cores.driver), target=list(cores.target)) if cores else None,
        limits={**limits, **(own or {})},
    )
