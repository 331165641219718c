"""./lab doctor: what this machine and a container engine have, and what each thing limits."""

import os
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil
from rich.table import Table
from rich.text import Text

from spikelab import paths
from spikelab.console import out
from spikelab.errors import UsageError
from spikelab.machine import (
    USER_BYTES,
    chosen_cores,
    ephemeral_ports,
    open_files,
    port_holder,
    sysctl,
    usable_cpus,
    users_by_open_files,
)
from spikelab.settings import PORTS, load_stack_settings, load_target_declaration
from spikelab.stack.docker import (
    OTHER_THREADS,
    PROCESS_LIMIT,
    THREADS,
    require_threads,
    whole_limit,
)
from spikelab.stack.engine import Engine, find_engine, unusable
from spikelab.stack.programs import ON_DEMAND_ADVICE, find_grafana, find_program, printed

_STYLES = {"ok": "green", "limits": "yellow", "missing": "red"}
_GIBIBYTE = 2**30
_NEEDED_DISK_BYTES = 6 * _GIBIBYTE
_GO_MINIMUM = (1, 21)
_JAVA_MINIMUM = 17
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kmgt]?)b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SMALLEST_MEMORY_BYTES = 6 * 2**20  # the engine's own
_LEAST_CPUS = 0.01  # likewise


@dataclass(frozen=True)
class Finding:
    """What a check found, and what that limits or how to cure it. Missing: the lab, or one of its
    runtimes, does not start so."""

    state: Literal["ok", "limits", "missing"]
    found: str
    limits: str = ""


def run() -> bool:
    """Prints every finding; whether the lab can run here in one runtime or the other."""
    findings = {name: check() for name, check in CHECKS.items()}
    # Where no engine answers, that is a finding itself.
    if engine := find_engine():
        values = load_stack_settings().values
        for name, of_container in CONTAINER_CHECKS.items():
            try:
                findings[name] = of_container(values, engine)
            except UsageError as error:
                findings[name] = Finding("missing", "no limit", str(error))
    table = Table(box=None, pad_edge=False)
    for column in ("check", "", "found", "what it limits"):
        table.add_column(column, overflow="fold")
    for name, each in findings.items():
        table.add_row(name, Text(each.state, style=_STYLES[each.state]), each.found, each.limits)
    out.print(table)
    runs = {name for name, finding in findings.items() if finding.state != "missing"}
    return "container engine" in runs or {"Java", "Go"} <= runs


def container_engine() -> Finding:
    engine = find_engine()
    reason = unusable()
    if engine is None or reason:
        reason = reason or "docker info does not name its CPUs and memory"
        return Finding("missing", reason, "the lab runs as plain processes")
    found = f"{engine.system}, {engine.cpus} cores, {engine.memory_bytes / _GIBIBYTE:.1f} GiB"
    # Docker Desktop's machine has less than the computer it runs on.
    memory_here = psutil.virtual_memory().total
    if engine.cpus < (os.cpu_count() or 1) or engine.memory_bytes < memory_here * 0.9:
        return Finding(
            "limits",
            found,
            f"its machine is smaller than this one: about "
            f"{int(engine.memory_bytes * 0.5 / USER_BYTES):,} users beside the stack",
        )
    return Finding("ok", found)


def java() -> Finding:
    home = os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else "java"
    version = _version(program, "-version", r'version "(\d+)')
    if version is None or version[0] < _JAVA_MINIMUM or shutil.which("mvn") is None:
        return Finding(
            "missing",
            "no Maven" if version and version[0] >= _JAVA_MINIMUM else "no Java 17+",
            "the host runtime cannot build its target: install a JDK 17+ and Maven",
        )
    needed = load_target_declaration().settings["TOMCAT_VIRTUAL_THREADS"].needs_java or 0
    limit = f"no virtual threads below {needed}" if version[0] < needed else ""
    return Finding("limits" if limit else "ok", str(version[0]), limit)


def go() -> Finding:
    version = _version("go", "version", r"go(\d+)\.(\d+)")
    if version is None or version < _GO_MINIMUM:
        return Finding(
            "missing",
            "not found" if version is None else _dotted(version),
            "the host runtime cannot build k6, Prometheus and InfluxDB: install Go 1.21+",
        )
    return Finding("ok", _dotted(version))


def grafana() -> Finding:
    home = find_grafana()
    if home is None:
        return Finding(
            "limits", "none found", "no dashboards on the host runtime: set GRAFANA_HOME"
        )
    return Finding("ok", str(home))


def proxy() -> Finding:
    without = "no plan through the proxy on the host runtime"
    return _on_demand("proxy", r"version (\d+)\.(\d+)", without)


def redis() -> Finding:
    return _on_demand("redis", r"v=(\d+)\.(\d+)", "no broker of revocations on the host runtime")


def _on_demand(component: str, pattern: str, without: str) -> Finding:
    program = find_program(component)
    if program is None:
        return Finding("limits", "not found", f"{without}: {ON_DEMAND_ADVICE[component]}")
    version = _version(program, "-v", pattern)
    return Finding("ok", _dotted(version) if version else program)


def locust() -> Finding:
    program = paths.LOCUST_VENV / "bin" / "locust"
    version = _version(str(program), "--version", r"locust (\d+)\.(\d+)\.(\d+)")
    if version is None:
        return Finding("ok", "not installed yet", "a plan's first run with it installs it")
    return Finding("ok", _dotted(version))


def ports() -> Finding:
    settings = load_stack_settings()
    taken = []
    for component, variables in PORTS.items():
        for port in map(settings.port, variables):
            if by := port_holder(port):
                taken.append(f"{port} ({component}){by}")
    if taken:
        return Finding(
            "limits",
            "taken: " + ", ".join(taken),
            "if not the lab's own: stop it, or set another port in compose/.env",
        )
    return Finding("ok", "all free")


def open_file_limit() -> Finding:
    files, users = open_files(), users_by_open_files()
    return Finding(
        "ok" if users >= 50_000 else "limits",
        f"{files:,} a process",
        f"at most about {users:,} users on this machine: {files:,} open files a process",
    )


def port_range() -> Finding:
    count = ephemeral_ports()
    if count is None:
        return Finding("limits", "unknown on this system")
    return Finding(
        "ok", f"{count:,} local ports", f"at most {count:,} connections to one address and port"
    )


def accept_queue() -> Finding:
    text = sysctl("net/core/somaxconn")
    if text is None:
        return Finding("limits", "unknown on this system")
    return Finding("ok", text, f"an accept-count above {text} is silently {text}")


def cores() -> Finding:
    usable = usable_cpus()
    count = str(len(usable) or os.cpu_count() or 1)
    settings = load_stack_settings().values
    try:
        always = chosen_cores(settings, usable, separate=False)
        separate = chosen_cores(settings, usable, separate=True)
    except UsageError as error:
        return Finding("limits", count, f"no run: {error}")
    if separate is None:
        limit = "driver and target share them: rates are lower than on separate machines"
        return Finding("limits", count, limit)
    return Finding("ok", count, f"{'runs' if always else 'comparisons'}: {separate}")


def memory() -> Finding:
    available = psutil.virtual_memory().available
    users = available // USER_BYTES
    return Finding(
        "ok" if available > 4 * _GIBIBYTE else "limits",
        f"{available / _GIBIBYTE:.1f} GiB free",
        f"at most about {users:,} users of k6 at {USER_BYTES // 1000} KB each",
    )


def clock() -> Finding:
    path = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    source = path.read_text().strip() if path.exists() else None
    if source is None:
        return Finding("ok", "source unknown on this system")
    if source in ("hpet", "acpi_pm", "jiffies"):
        return Finding("limits", source, "reading the time is slow: every timer costs more")
    return Finding("ok", source)


def disk() -> Finding:
    free = shutil.disk_usage(paths.ROOT).free
    found = f"{free / _GIBIBYTE:.0f} GiB free"
    if free > _NEEDED_DISK_BYTES:
        return Finding("ok", found)
    return Finding("limits", found, "builds and a day of results need about 6 GiB")


def container_memory(values: Mapping[str, str], engine: Engine) -> Finding:
    """Every limit fits; and what a spike takes, target and driver, fits beside the others."""
    sizes = {name: parse_size(name, values[name]) for name in _named(values, "_MEMORY_LIMIT")}
    has = f"the engine's machine has {engine.memory_bytes / _GIBIBYTE:.1f} GiB"
    too_much = [name for name, size in sizes.items() if size > engine.memory_bytes]
    if too_much:
        names = ", ".join(f"{name}={values[name]}" for name in too_much)
        return Finding("limits", names, f"{has}: the kernel ends a process before that")
    driver = sizes["DRIVER_MEMORY_LIMIT"]
    both = sizes["TARGET_MEMORY_LIMIT"] + driver
    if both > engine.memory_bytes:
        return Finding(
            "limits",
            f"{both / _GIBIBYTE:.1f} GiB for target and driver together",
            f"{has}: lower DRIVER_MEMORY_LIMIT or TARGET_MEMORY_LIMIT",
        )
    users = driver // USER_BYTES
    return Finding("ok", f"{driver / _GIBIBYTE:.1f} GiB a driver: {users:,} users of k6")


def container_cpus(values: Mapping[str, str], engine: Engine) -> Finding:
    """No limit is above what the engine has: it would refuse to start the container."""
    limits = {name: _cpus(name, values[name]) for name in _named(values, "_CPU_LIMIT")}
    too_many = [name for name, cpus in limits.items() if cpus > engine.cpus]
    if too_many:
        return Finding(
            "missing",
            ", ".join(f"{name}={values[name]}" for name in too_many),
            f"the engine has {engine.cpus} and refuses to start them: 0 is no limit",
        )
    *measured, others = limits
    limited = [f"{name}={values[name]}" for name in measured if limits[name]]
    if limited:
        return Finding(
            "limits",
            ", ".join(limited),
            "a quota stops what is measured for tens of milliseconds at a time",
        )
    return Finding("ok", f"of {engine.cpus}, {others}={values[others]}")


def container_processes(values: Mapping[str, str], engine: Engine) -> Finding:
    """The target may have its threads."""
    limit = whole_limit(values, PROCESS_LIMIT)
    found = f"{limit:,} for the target"
    default = load_target_declaration().settings[THREADS].default
    try:
        require_threads(values, {THREADS: values.get(THREADS) or default})
    except UsageError as error:
        return Finding("limits", found, str(error))
    return Finding("ok", found, f"at most {limit - OTHER_THREADS:,} worker threads")


def container_files(values: Mapping[str, str], engine: Engine) -> Finding:
    """The engine may give a container as many open files as it asks for."""
    limit = whole_limit(values, "OPEN_FILES")
    found = f"{limit:,} a container"
    if engine.open_files is not None and limit > engine.open_files:
        return Finding(
            "missing",
            found,
            f"the engine has {engine.open_files:,} itself and may refuse to start them: lower "
            "OPEN_FILES",
        )
    return Finding("ok", found)


def parse_size(name: str, text: str) -> int:
    """Bytes of a container's memory limit, such as 512m or 2g. Raises UsageError."""
    found = _SIZE.fullmatch(text)
    size = int(float(found[1]) * _UNITS[found[2].lower()]) if found else 0
    if size < _SMALLEST_MEMORY_BYTES:
        raise UsageError(f"{name}={text}: must be a size from 6m on, such as 2g (compose/.env)")
    return size


def _cpus(name: str, text: str) -> float:
    with suppress(ValueError):
        number = float(text)
        if number == 0 or _LEAST_CPUS <= number < float("inf"):
            return number
    raise UsageError(f"{name}={text}: must be a number of CPUs such as 1.5, or 0 (compose/.env)")


def _named(values: Mapping[str, str], ending: str) -> list[str]:
    """In the order of the example, which ends with every other container's."""
    return [name for name in values if name.endswith(ending)]


def _version(program: str, argument: str, pattern: str) -> tuple[int, ...] | None:
    if shutil.which(program) is None:
        return None
    match = re.search(pattern, printed(program, argument))
    return tuple(map(int, match.groups())) if match else None


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


CHECKS: dict[str, Callable[[], Finding]] = {
    "container engine": container_engine,
    "Java": java,
    "Go": go,
    "Grafana": grafana,
    "HAProxy": proxy,
    "Redis": redis,
    "Locust": locust,
    "ports": ports,
    "open files": open_file_limit,
    "port range": port_range,
    "somaxconn": accept_queue,
    "cores": cores,
    "memory": memory,
    "clock": clock,
    "disk": disk,
}
# compose/.env's limits of containers, beside the machine that the engine runs on.
CONTAINER_CHECKS: dict[str, Callable[[Mapping[str, str], Engine], Finding]] = {
    "containers' memory": container_memory,
    "containers' CPUs": container_cpus,
    "containers' processes": container_processes,
    "containers' open files": container_files,
}
