"""What the host target is started with: a file that host/start-target reads at each start."""

import shlex
import shutil
from collections.abc import Mapping

from spikelab import paths
from spikelab.cores import Cores, cpu_list
from spikelab.errors import UsageError
from spikelab.runtime import TargetBuild
from spikelab.runtime.builds import file_hash, missing_libraries
from spikelab.tools import target_jar, target_stamp

_FILE = paths.STATE / "target.env"
_BUILD = "TARGET_BUILD"


def write_target_env(values: Mapping[str, object]) -> None:
    """Writes it anew."""
    lines = [f"{name}={shlex.quote(str(value))}" for name, value in values.items()]
    _FILE.write_text("\n".join(lines) + "\n")


def change_target_env(name: str, value: str) -> bool:
    """Sets one variable and leaves the others; whether that changed anything."""
    before = _read()
    after = {**before, name: value}
    write_target_env(after)
    return before != after


def start_variables(build: TargetBuild | None, cores: Cores | None) -> dict[str, str]:
    """Which jar, by its hash as well, and on which CPUs; empty: on all."""
    jar = build.jar if build else None
    return {
        "TARGET_JAR": str(jar or target_jar()),
        _BUILD: file_hash(jar) if jar else target_stamp(),
        "TARGET_CPUS": cpu_list(cores.target) if cores else "",
    }


def started_with(build: TargetBuild | None, cores: Cores | None) -> bool:
    """Whether the target's last start was with these, and the jar is still the same."""
    return start_variables(build, cores).items() <= _read().items()


def started_build() -> str | None:
    """The hash of what was started last; None before the first start."""
    return _read().get(_BUILD)


def require_startable(build: TargetBuild) -> None:
    """Raises UsageError where plain processes cannot start the target so."""
    if build.image or build.compose:
        named = (
            f"image {build.image}" if build.image else f"compose {paths.shown(build.compose[0])}"
        )
        raise UsageError(
            f"{named}: only the docker runtime starts the target so: ./lab down, then "
            "./lab up --runtime docker, or name a jar"
        )
    if build.jar and (missing := missing_libraries(build.jar)):
        raise UsageError(
            f"jar {paths.shown(build.jar)}: its Class-Path wants {missing[0]} beside it"
            + (f" and {len(missing) - 1} more" if missing[1:] else "")
            + ": keep the folder lib of its build next to it"
        )


def require_binding(cores: Cores | None) -> None:
    """Raises UsageError where a start script cannot bind the target to CPUs."""
    if cores and shutil.which("taskset") is None:
        raise UsageError(
            "taskset is not on PATH, and binds the target to its CPUs: install util-linux, or set "
            "TARGET_CPUS=none (compose/.env)"
        )


def _read() -> dict[str, str]:
    if not _FILE.exists():
        return {}
    pairs = (word.partition("=") for word in shlex.split(_FILE.read_text()))
    return {name: value for name, _, value in pairs}
