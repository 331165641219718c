"""The runtimes that start the stack, and which one it is: docker where an engine answers and has
the images or can pull them, else host."""

import os

from spikelab import paths
from spikelab.errors import UsageError, did_you_mean
from spikelab.stack import engine
from spikelab.stack.base import Runtime
from spikelab.stack.docker import DockerRuntime
from spikelab.stack.host import HostRuntime

_RUNTIMES: dict[str, type[DockerRuntime | HostRuntime]] = {
    runtime.name: runtime for runtime in (DockerRuntime, HostRuntime)
}
_REMEMBERED = paths.STATE / "runtime"


def choose(asked: str | None) -> tuple[Runtime, str]:
    """The runtime for `up` and why; asked for by option or LAB_RUNTIME, else found out."""
    name = asked or os.environ.get("LAB_RUNTIME") or "auto"
    if name in _RUNTIMES:
        return _RUNTIMES[name](), "as asked"
    if name != "auto":
        raise UsageError(f"--runtime {name}: unknown" + did_you_mean(name, ("auto", *_RUNTIMES)))
    running = current()
    if any(component.running for component in running.status()):
        return running, "it is running already"
    reason = engine.unusable()
    if reason is None:
        return DockerRuntime(), "a container engine answers and has the images"
    return HostRuntime(), reason


def remember(runtime: Runtime) -> None:
    """Every later command speaks to the runtime that `up` took."""
    paths.STATE.mkdir(parents=True, exist_ok=True)
    _REMEMBERED.write_text(runtime.name + "\n")


def current() -> Runtime:
    """The runtime that `up` took last; host before the first one."""
    name = _REMEMBERED.read_text().strip() if _REMEMBERED.exists() else ""
    return _RUNTIMES.get(name, HostRuntime)()
