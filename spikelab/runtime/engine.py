"""The container engine itself: whether it can be used, its machine, its images."""

import re
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from spikelab.console import working
from spikelab.errors import LabError, UsageError
from spikelab.runtime.compose import has_image, pulled_images, succeeds
from spikelab.runtime.running_container import image_id

_PULL_PROBE_SECONDS = 30
_PULL_SECONDS = 600


@dataclass(frozen=True)
class Engine:
    """What the engine's machine has; `open_files`: the most that a container may ask for, where
    that can be seen from here; `system`: its name, such as Docker Desktop."""

    cpus: int
    memory_bytes: int
    open_files: int | None
    system: str


def find_engine() -> Engine | None:
    """The engine that answers; None where none does, or no docker is installed."""
    if shutil.which("docker") is None:
        return None
    said = subprocess.run(
        ["docker", "info", "--format", "{{.NCPU}} {{.MemTotal}} {{.OperatingSystem}}"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split(maxsplit=2)
    # A client may print zeros when its daemon does not answer.
    if len(said) < 2 or not all(word.isdigit() for word in said[:2]) or said[0] == "0":
        return None
    system = said[2].strip() if len(said) > 2 else "a container engine"
    return Engine(int(said[0]), int(said[1]), _open_files(), system)


def unusable() -> str | None:
    """Why docker can't be used here, in a clause; None when it can."""
    if shutil.which("docker") is None:
        return "there is no docker here"
    if not succeeds("docker", "info"):
        return "no container engine answers"
    if not succeeds("docker", "compose", "version"):
        return "docker has no compose plugin"
    try:
        images = pulled_images()
    except LabError as error:
        return str(error)
    missing = [image for image in images if not has_image(image)]
    if missing and not _pull(missing[0], _PULL_PROBE_SECONDS):
        return f"the image {missing[0]} is not here and cannot be pulled"
    return None


def cpus() -> frozenset[int]:
    """The CPUs that containers may be bound to."""
    engine = find_engine()
    return frozenset(range(engine.cpus if engine else 0))


def require_image(image: str) -> None:
    """Has it here. Raises UsageError where it cannot be pulled."""
    if image_id(image) is not None:
        return
    with working(f"pulling {image}"):
        pulled = _pull(image, _PULL_SECONDS)
    if not pulled:
        raise UsageError(
            f"image {image} is not here and cannot be pulled: build it, or load it with docker load"
        )


def _pull(image: str, seconds: float) -> bool:
    return succeeds("docker", "pull", "--quiet", image, seconds=seconds)


def _open_files() -> int | None:
    """Of the engine's daemon where it runs on this machine."""
    for process in psutil.process_iter(["name"]):
        if process.info["name"] == "dockerd":
            with suppress(OSError):
                text = Path(f"/proc/{process.pid}/limits").read_text()
                found = re.search(r"^Max open files +\S+ +(\d+)", text, re.MULTILINE)
                return int(found[1]) if found else None
    return None
