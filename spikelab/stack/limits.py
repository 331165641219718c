"""The containers' limits in compose/.env, beside the machine that the engine runs on."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from spikelab.errors import UsageError
from spikelab.machine import USER_BYTES, Finding
from spikelab.settings import load_stack_settings, load_target_declaration
from spikelab.stack.engine import Engine, find_engine
from spikelab.units import parse_whole_number

_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kmgt]?)b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_GIBIBYTE = 2**30
# What a thread pool leaves to the JVM itself; also in compose/.env.example.
_OTHER_THREADS = 200
_THREADS = "TOMCAT_MAX_THREADS"
_PROCESSES = "TARGET_PROCESS_LIMIT"
_SMALLEST_MEMORY_BYTES = 6 * 2**20  # the engine's own
_LEAST_CPUS = 0.01  # likewise


def parse_size(name: str, text: str) -> int:
    """Bytes of a container's memory limit, such as 512m or 2g. Raises UsageError."""
    found = _SIZE.fullmatch(text)
    size = int(float(found[1]) * _UNITS[found[2].lower()]) if found else 0
    if size < _SMALLEST_MEMORY_BYTES:
        raise UsageError(f"{name}={text}: must be a size from 6m on, such as 2g (compose/.env)")
    return size


def memory(values: Mapping[str, str], engine: Engine) -> Finding:
    """Every limit fits; and what a spike takes, target and driver, fits beside the others."""
    sizes = {name: parse_size(name, values[name]) for name in _named(values, "_MEMORY_LIMIT")}
    least = {name: size for name, size in sizes.items() if size > engine.memory_bytes}
    users = sizes["DRIVER_MEMORY_LIMIT"] // USER_BYTES
    found = f"{sizes['DRIVER_MEMORY_LIMIT'] / _GIBIBYTE:.1f} GiB a driver: {users:,} users of k6"
    has = f"the engine's machine has {engine.memory_bytes / _GIBIBYTE:.1f} GiB"
    if least:
        names = ", ".join(f"{name}={values[name]}" for name in least)
        return Finding(
            "containers' memory", "limits", names, f"{has}: the kernel ends a process before that"
        )
    both = sizes["TARGET_MEMORY_LIMIT"] + sizes["DRIVER_MEMORY_LIMIT"]
    if both > engine.memory_bytes:
        return Finding(
            "containers' memory",
            "limits",
            f"{both / _GIBIBYTE:.1f} GiB for target and driver together",
            f"{has}: lower DRIVER_MEMORY_LIMIT or TARGET_MEMORY_LIMIT",
        )
    return Finding("containers' memory", "ok", found)


def cpus(values: Mapping[str, str], engine: Engine) -> Finding:
    """No limit is above what the engine has: it would refuse to start the container."""
    names = _named(values, "_CPU_LIMIT")
    too_many = [name for name in names if _cpus(name, values[name]) > engine.cpus]
    if too_many:
        return Finding(
            "containers' CPUs",
            "missing",
            ", ".join(f"{name}={values[name]}" for name in too_many),
            f"the engine has {engine.cpus} and refuses to start them: 0 is no limit",
        )
    limited = [f"{name}={values[name]}" for name in names[:-1] if _cpus(name, values[name])]
    if limited:
        return Finding(
            "containers' CPUs",
            "limits",
            ", ".join(limited),
            "a quota stops what is measured for tens of milliseconds at a time",
        )
    return Finding("containers' CPUs", "ok", f"of {engine.cpus}, {names[-1]}={values[names[-1]]}")


def processes(values: Mapping[str, str], engine: Engine) -> Finding:
    """The target may have its threads."""
    limit = _whole(_PROCESSES, values[_PROCESSES])
    found = f"{limit:,} for the target"
    declared = load_target_declaration().settings[_THREADS]
    try:
        require_threads(values, {_THREADS: values.get(_THREADS) or str(declared.default)})
    except UsageError as error:
        return Finding("containers' processes", "limits", found, str(error))
    most = limit - _OTHER_THREADS
    return Finding("containers' processes", "ok", found, f"at most {most:,} worker threads")


def require_threads(values: Mapping[str, str], settings: Mapping[str, object]) -> None:
    """Raises UsageError where the target's container may not have the threads of these settings: it
    would die of the first that it cannot have."""
    if _THREADS not in settings:
        return
    limit = _whole(_PROCESSES, values[_PROCESSES])
    threads = _whole(_THREADS, str(settings[_THREADS]))
    if threads + _OTHER_THREADS > limit:
        raise UsageError(
            f"{_THREADS}={threads} needs {_PROCESSES}={threads + _OTHER_THREADS}, which is {limit} "
            "(compose/.env)"
        )


def files(values: Mapping[str, str], engine: Engine) -> Finding:
    """The engine may give a container as many open files as it asks for."""
    limit = _whole("OPEN_FILES", values["OPEN_FILES"])
    found = f"{limit:,} a container"
    if engine.open_files is not None and limit > engine.open_files:
        return Finding(
            "containers' open files",
            "missing",
            found,
            f"the engine has {engine.open_files:,} itself and may refuse to start them: lower "
            "OPEN_FILES",
        )
    return Finding("containers' open files", "ok", found)


def checks() -> list[Callable[[], Finding]]:
    """A check for each kind of limit; none where no engine answers, which has a finding itself."""
    engine = find_engine()
    if engine is None:
        return []
    values = load_stack_settings().values
    return [_check(check, values, engine) for check in (memory, cpus, processes, files)]


def _check(
    check: Callable[[Mapping[str, str], Engine], Finding],
    values: Mapping[str, str],
    engine: Engine,
) -> Callable[[], Finding]:
    def run() -> Finding:
        try:
            return check(values, engine)
        except UsageError as error:
            return Finding(f"containers' {check.__name__}", "missing", "no limit", str(error))

    return run


def _named(values: Mapping[str, str], ending: str) -> Sequence[str]:
    """In the order of the example, which ends with every other container's."""
    return [name for name in values if name.endswith(ending)]


def _cpus(name: str, text: str) -> float:
    with suppress(ValueError):
        number = float(text)
        if number == 0 or _LEAST_CPUS <= number < float("inf"):
            return number
    raise UsageError(f"{name}={text}: must be a number of CPUs such as 1.5, or 0 (compose/.env)")


def _whole(name: str, text: str) -> int:
    number = parse_whole_number(text)
    if number is None or number < 1:
        raise UsageError(f"{name}={text}: must be a whole number from 1 on (compose/.env)")
    return number
