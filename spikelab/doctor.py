"""./lab doctor: what this machine has, and what each thing limits."""

# - What ./lab doctor finds.
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
from rich.table import Table
from rich.text import Text

from spikelab import paths
from spikelab.console import out
from spikelab.errors import UsageError
from spikelab.machine import (
    USER_BYTES,
    Finding,
    chosen_cores,
    ephemeral_ports,
    most_users,
    open_files,
    sysctl,
    usable_cpus,
)
from spikelab.settings import PORTS, load_stack_settings, load_target_declaration
from spikelab.stack import limits
from spikelab.stack.docker import DockerRuntime
from spikelab.stack.engine import find_engine
from spikelab.stack.host import holder
from spikelab.stack.programs import ON_DEMAND_ADVICE, find_grafana, find_program

_STYLES = {"ok": "green", "limits": "yellow", "missing": "red"}
_GIBIBYTE = 2**30
_NEEDED_DISK_BYTES = 6 * _GIBIBYTE
_GO_MINIMUM = (1, 21)
_JAVA_MINIMUM = 17


def run() -> bool:
    """Prints every finding; whether the lab can run here in one runtime or the other."""
    findings = [check() for check in (*CHECKS, *limits.checks())]
    table = Table(box=None, pad_edge=False)
    for column in ("check", "", "found", "what it limits"):
        table.add_column(column, overflow="fold")
    for each in findings:
        table.add_row(
            each.name, Text(each.state, style=_STYLES[each.state]), each.found, each.limits
        )
    out.print(table)
    states = {finding.name: finding.state for finding in findings}
    docker = states["container engine"] != "missing"
    host = states["Java"] != "missing" and states["Go"] != "missing"
    return docker or host


def container_engine() -> Finding:
    engine = find_engine()
    reason = DockerRuntime.unusable()
    if engine is None or reason:
        reason = reason or "docker info does not name its CPUs and memory"
        return Finding("container engine", "missing", reason, "the lab runs as plain processes")
    found = f"{engine.system}, {engine.cpus} cores, {engine.memory_bytes / _GIBIBYTE:.1f} GiB"
    # Docker Desktop's machine has less than the computer it runs on.
    memory_here = psutil.virtual_memory().total
    if engine.cpus < (os.cpu_count() or 1) or engine.memory_bytes < memory_here * 0.9:
        return Finding(
            "container engine",
            "limits",
            found,
            f"its machine is smaller than this one: about "
            f"{int(engine.memory_bytes * 0.5 / USER_BYTES):,} users beside the stack",
        )
    return Finding("container engine", "ok", found)


def ports() -> Finding:
    settings = load_stack_settings()
    taken = []
    for component, variables in PORTS.items():
        for variable in variables:
            by = holder(settings.port(variable))
            if by:
                taken.append(f"{settings.port(variable)} ({component}){by}")
    if taken:
        return Finding(
            "ports",
            "limits",
            "taken: " + ", ".join(taken),
            "if not the lab's own: stop it, or set another port in compose/.env",
        )
    return Finding("ports", "ok", "all free")


def open_file_limit() -> Finding:
    files = open_files()
    users, _ = next(limit for limit in most_users() if "open files" in limit[1])
    return Finding(
        "open files",
        "ok" if users >= 50_000 else "limits",
        f"{files:,} a process",
        f"at most about {users:,} users on this machine: {files:,} open files a process",
    )


def port_range() -> Finding:
    count = ephemeral_ports()
    if count is None:
        return Finding("port range", "limits", "unknown on this system")
    return Finding(
        "port range",
        "ok",
        f"{count:,} local ports",
        f"at most {count:,} connections to one address and port",
    )


def accept_queue() -> Finding:
    text = sysctl("net/core/somaxconn")
    if text is None:
        return Finding("somaxconn", "limits", "unknown on this system")
    return Finding("somaxconn", "ok", text, f"an accept-count above {text} is silently {text}")


def cores() -> Finding:
    usable = usable_cpus()
    count = str(len(usable) or os.cpu_count() or 1)
    settings = load_stack_settings().values
    try:
        always = chosen_cores(settings, usable, separate=False)
        separate = chosen_cores(settings, usable, separate=True)
    except UsageError as error:
        return Finding("cores", "limits", count, f"no run: {error}")
    if separate is None:
        limit = "driver and target share them: rates are lower than on separate machines"
        return Finding("cores", "limits", count, limit)
    return Finding("cores", "ok", count, f"{'runs' if always else 'comparisons'}: {separate}")


def memory() -> Finding:
    available = psutil.virtual_memory().available
    users = available // USER_BYTES
    return Finding(
        "memory",
        "ok" if available > 4 * _GIBIBYTE else "limits",
        f"{available / _GIBIBYTE:.1f} GiB free",
        f"at most about {users:,} users of k6 at {USER_BYTES // 1000} KB each",
    )


def clock() -> Finding:
    path = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    source = path.read_text().strip() if path.exists() else None
    if source is None:
        return Finding("clock", "ok", "source unknown on this system")
    slow = source in ("hpet", "acpi_pm", "jiffies")
    return Finding(
        "clock",
        "limits" if slow else "ok",
        source,
        "reading the time is slow: every timer costs more" if slow else "",
    )


def java() -> Finding:
    home = os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else "java"
    version = _version(program, "-version", r'version "(\d+)')
    if version is None or version[0] < _JAVA_MINIMUM or shutil.which("mvn") is None:
        return Finding(
            "Java",
            "missing",
            "no Maven" if version and version[0] >= _JAVA_MINIMUM else "no Java 17+",
            "the host runtime cannot build its target: install a JDK 17+ and Maven",
        )
    needed = load_target_declaration().settings["TOMCAT_VIRTUAL_THREADS"].needs_java or 0
    limit = f"no virtual threads below {needed}" if version[0] < needed else ""
    return Finding("Java", "limits" if limit else "ok", str(version[0]), limit)


def go() -> Finding:
    version = _version("go", "version", r"go(\d+)\.(\d+)")
    if version is None or version < _GO_MINIMUM:
        return Finding(
            "Go",
            "missing",
            "not found" if version is None else _dotted(version),
            "the host runtime cannot build k6, Prometheus and InfluxDB: install Go 1.21+",
        )
    return Finding("Go", "ok", _dotted(version))


def disk() -> Finding:
    free = shutil.disk_usage(paths.ROOT).free
    enough = free > _NEEDED_DISK_BYTES
    return Finding(
        "disk",
        "ok" if enough else "limits",
        f"{free / _GIBIBYTE:.0f} GiB free",
        "" if enough else "builds and a day of results need about 6 GiB",
    )


def grafana() -> Finding:
    home = find_grafana()
    if home is None:
        return Finding(
            "Grafana", "limits", "none found", "no dashboards on the host runtime: set GRAFANA_HOME"
        )
    return Finding("Grafana", "ok", str(home))


def proxy() -> Finding:
    return _on_demand(
        "HAProxy", "proxy", r"version (\d+)\.(\d+)", "no plan through the proxy on the host runtime"
    )


def redis() -> Finding:
    return _on_demand(
        "Redis", "redis", r"v=(\d+)\.(\d+)", "no broker of revocations on the host runtime"
    )


def _on_demand(name: str, component: str, pattern: str, without: str) -> Finding:
    program = find_program(component)
    if program is None:
        return Finding(name, "limits", "not found", f"{without}: {ON_DEMAND_ADVICE[component]}")
    version = _version(program, "-v", pattern)
    return Finding(name, "ok", _dotted(version) if version else program)


def locust() -> Finding:
    program = paths.LOCUST_VENV / "bin" / "locust"
    version = _version(str(program), "--version", r"locust (\d+)\.(\d+)\.(\d+)")
    if version is None:
        return Finding(
            "Locust", "ok", "not installed yet", "a plan's first run with it installs it"
        )
    return Finding("Locust", "ok", _dotted(version))


def _version(program: str, argument: str, pattern: str) -> tuple[int, ...] | None:
    if shutil.which(program) is None:
        return None
    said = subprocess.run([program, argument], capture_output=True, text=True, check=False)
    match = re.search(pattern, said.stdout + said.stderr)
    return tuple(map(int, match.groups())) if match else None


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


CHECKS: list[Callable[[], Finding]] = [
    container_engine,
    java,
    go,
    grafana,
    proxy,
    redis,
    locust,
    ports,
    open_file_limit,
    port_range,
    accept_queue,
    cores,
    memory,
    clock,
    disk,
]
