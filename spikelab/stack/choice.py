"""Which runtime: docker where an engine answers and has the images or can pull them, else host."""

import os
from typing import Literal

from spikelab import paths
from spikelab.errors import UsageError, did_you_mean
from spikelab.stack.base import Runtime
from spikelab.stack.docker import DockerRuntime
from spikelab.stack.host import HostRuntime

Choice = Literal["auto", "docker", "host"]
_CHOICES = ("auto", "docker", "host")
_REMEMBERED = paths.STATE / "runtime"


def choose(asked: str | None) -> tuple[Runtime, str]:
    """The runtime for `up` and why; asked for by option or LAB_RUNTIME, else found out."""
    name = asked or os.environ.get("LAB_RUNTIME") or "auto"
    if name not in _CHOICES:
        raise UsageError(f"--runtime {name}: unknown" + did_you_mean(name, _CHOICES))
    if name == "host":
        return HostRuntime(), "as asked"
    if name == "docker":
        return DockerRuntime(), "as asked"
    running = current()
    if any(component.running for component in running.status()):
        return running, "it is running already"
    reason = DockerRuntime.unusable()
    if reason is None:
        return DockerRuntime(), "a container engine answers and has the images"
    return HostRuntime(), reason


def remember(runtime: Runtime) -> None:
    """Every later command speaks to the runtime that `up` took."""
    paths.STATE.mkdir(parents=True, exist_ok=True)
    _REMEMBERED.write_text(runtime.name + "\n")


def current() -> Runtime:
    """The runtime that `up` took last; host before the first one."""
    if _REMEMBERED.exists() and _REMEMBERED.read_text().strip() == DockerRuntime.name:
        return DockerRuntime()
    return HostRuntime()
