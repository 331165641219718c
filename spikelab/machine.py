"""This machine: facts that decide what a load test can show, and which CPUs the driver and the
target get, so that neither takes the other's time.

A CPU is what the kernel numbers; hyper-threads of one core are several CPUs.
"""

import os
import platform
import re
import resource
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from spikelab.errors import UsageError
from spikelab.results.run import Host, HostCores

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


def users_by_open_files() -> int:
    """The most users of one driver process by its files."""
    return open_files() - _RESERVED_FILES


def most_users() -> list[tuple[int, str]]:
    """(users, reason) for each limit of this machine on the users of one driver process."""
    limits = [
        (users_by_open_files(), f"{open_files():,} open files a process"),
        (
            psutil.virtual_memory().available // USER_BYTES,
            f"{psutil.virtual_memory().available / 2**30:.1f} GiB of free memory",
        ),
    ]
    ports = ephemeral_ports()
    if ports is not None:
        limits.append((ports, f"{ports:,} local ports"))
    return sorted(limits)


def port_holder(port: int) -> str:
    """`` by NAME (pid N)`` for the process that listens on a port; empty where it can't be seen."""
    with suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,):
                if connection.pid is None:
                    return ""
                return f" by {psutil.Process(connection.pid).name()} (pid {connection.pid})"
    return ""


@dataclass(frozen=True)
class Cores:
    """The CPUs of the driver and those of the target, by number, in ascending order."""

    driver: tuple[int, ...]
    target: tuple[int, ...]

    def __str__(self) -> str:
        return f"driver on {cpu_list(self.driver)}, target on {cpu_list(self.target)}"


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


# The settings in compose/.env that decide it by hand.
DRIVER_CPUS = "DRIVER_CPUS"
TARGET_CPUS = "TARGET_CPUS"
OFF = "none"
# With fewer, one of the two would have less than two threads can use, and less than it has now.
_FEWEST_CPUS = 4
_TOPOLOGY = Path("/sys/devices/system/cpu")
_RANGE = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")


def usable_cpus() -> frozenset[int]:
    """The CPUs that this process may run on: its affinity mask, which the kernel keeps within the
    cgroup's cpuset. Empty where the system binds no process to CPUs (macOS)."""
    if not hasattr(os, "sched_getaffinity"):
        return frozenset()
    return frozenset(os.sched_getaffinity(0))


def chosen_cores(
    settings: Mapping[str, str], cpus: Collection[int], *, separate: bool
) -> Cores | None:
    """The CPUs of a run: as compose/.env asks for every run; else, with `separate`, those of
    `separate_cores`. None: nothing is bound. Raises UsageError for a setting that is wrong."""
    asked = {name: settings.get(name, "").strip() for name in (DRIVER_CPUS, TARGET_CPUS)}
    lists = {name: text for name, text in asked.items() if text and text != OFF}
    if not lists:
        return None if OFF in asked.values() or not separate else separate_cores(cpus)
    if len(lists) == 1:
        (given,) = lists
        (other,) = {*asked} - {given}
        raise UsageError(f"{given}={asked[given][:60]}: set {other} as well (compose/.env)")
    chosen = {name: _existing(name, text, cpus) for name, text in lists.items()}
    shared = {*chosen[DRIVER_CPUS]} & {*chosen[TARGET_CPUS]}
    if shared:
        raise UsageError(
            f"{DRIVER_CPUS} and {TARGET_CPUS} share CPU {cpu_list(sorted(shared))}: "
            "give each its own (compose/.env)"
        )
    return Cores(driver=chosen[DRIVER_CPUS], target=chosen[TARGET_CPUS])


def separate_cores(
    cpus: Collection[int], core_of: Callable[[int], tuple[int, int]] | None = None
) -> Cores | None:
    """Half of the cores for each, whole cores only; None with fewer than four CPUs or two cores.

    Equal halves, as a driver works about as hard for a quick answer as its server. The driver has
    the first ones, where most interrupts are handled. With an odd number of cores, the one over is
    left to the stores, which may run on all the others as well: they take about a tenth of one.

    `core_of` a CPU: (socket, lowest CPU of the core), by default as the kernel tells it.
    """
    cores: dict[tuple[int, int], list[int]] = {}
    for cpu in sorted(cpus):
        cores.setdefault((core_of or _core_of)(cpu), []).append(cpu)
    half = len(cores) // 2
    if len(cpus) < _FEWEST_CPUS or not half:
        return None
    # By sockets: two halves that share no cache where there are two.
    ordered = [cores[key] for key in sorted(cores)]
    return Cores(driver=_together(ordered[:half]), target=_together(ordered[-half:]))


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """The numbers of a list as the kernel writes it, such as ``0-2,5``. Raises ValueError.

    >>> parse_cpu_list("0-2,5")
    (0, 1, 2, 5)
    """
    found: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise ValueError(f"'{text}' is no list of CPUs such as 0-2,5")
        found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(sorted(found))


def cpu_list(cpus: Collection[int]) -> str:
    """The same list as text, as `taskset` and Docker read it.

    >>> cpu_list((0, 1, 2, 5))
    '0-2,5'
    """
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and runs[-1][-1] == cpu - 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    return ",".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)


def _existing(name: str, text: str, cpus: Collection[int]) -> tuple[int, ...]:
    if not cpus:
        raise UsageError(f"{name}={text}: this system binds no process to CPUs: set {OFF}")
    try:
        found = parse_cpu_list(text)
    except ValueError as error:
        raise UsageError(
            f"{name}={text[:60]}: write CPU numbers such as 0-2,5, or {OFF} (compose/.env)"
        ) from error
    if missing := {*found} - {*cpus}:
        raise UsageError(
            f"{name}={text[:60]}: there is no CPU {min(missing)} to be used here, only "
            f"{cpu_list(cpus)} (compose/.env)"
        )
    return found


def _together(cores: Collection[list[int]]) -> tuple[int, ...]:
    return tuple(sorted(cpu for core in cores for cpu in core))


def _core_of(cpu: int) -> tuple[int, int]:
    """(socket, lowest CPU of the core); a core of its own where the kernel does not tell."""
    topology = _TOPOLOGY / f"cpu{cpu}" / "topology"
    try:
        siblings = parse_cpu_list((topology / "thread_siblings_list").read_text().strip())
        return int((topology / "physical_package_id").read_text()), siblings[0]
    except (OSError, ValueError):
        return 0, cpu
