"""The container engine: whether it can be used, its machine and images, and the calls of `docker`
and `docker compose` with the lab's Compose file."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from spikelab import paths
from spikelab.console import working
from spikelab.errors import LabError, UsageError
from spikelab.settings import COMPONENTS, ON_DEMAND

# Each component's service.
SERVICES = {name: name for name in COMPONENTS} | {"sockets": "sockets-exporter"}
# On images that the lab's tests build where the official ones cannot be had.
STAND_IN_LABEL = "spikelab.stand-in"
_ANSWER_SECONDS = 10
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
    template = "{{.NCPU}} {{.MemTotal}} {{.OperatingSystem}}"
    said = _docker("info", "--format", template).stdout.split(maxsplit=2)
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
        services = _configuration()["services"]
    except LabError as error:
        return str(error)
    # Of a plain `up`, what is not built here.
    images = sorted({each["image"] for each in services.values() if "build" not in each})
    missing = [image for image in images if not has_image(image)]
    if missing and not _pull(missing[0], _PULL_PROBE_SECONDS):
        return f"the image {missing[0]} is not here and cannot be pulled"
    return None


def has_image(name: str) -> bool:
    """Whether the engine has it; a stand-in of the tests does not count."""
    labels = inspected("image", name, "[{{json .Config.Labels}}]")
    return labels is not None and STAND_IN_LABEL not in (labels[0] or {})


def image_id(image: str) -> str | None:
    """An image's digest; None where it is not here."""
    found: str | None = inspected("image", image, "{{json .Id}}")
    return found


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


def inspected(kind: str, name: str, template: str) -> Any:
    """What `docker inspect` knows of a container or image, by a template that prints JSON; None
    where there is none."""
    said = _docker(kind, "inspect", "--format", template, name)
    return json.loads(said.stdout) if said.returncode == 0 else None


def compose_command(
    *arguments: str, files: Sequence[Path] = (), profiles: bool = True
) -> list[str]:
    """`docker compose` with the lab's file and these on top. With profiles, what is started on
    demand is seen whether it was asked for or not."""
    return [
        "docker",
        "compose",
        *(word for file in (paths.COMPOSE_FILE, *files) for word in ("-f", str(file))),
        *(word for name in ON_DEMAND if profiles for word in ("--profile", name)),
        *arguments,
    ]


def compose(
    *arguments: str,
    files: Sequence[Path] = (),
    env: Mapping[str, str] | None = None,
    profiles: bool = True,
) -> str:
    """What it prints. Raises LabError with its own last line."""
    result = subprocess.run(
        compose_command(*arguments, files=files, profiles=profiles),
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        said = [line for line in result.stderr.splitlines() if line.strip()]
        raise LabError(
            f"docker compose {arguments[0]} failed: {said[-1] if said else result.returncode}"
        )
    return result.stdout


def remove_networks() -> None:
    """Those of the project that the lab's own file does not name and nobody uses."""
    label = f"label=com.docker.compose.project={_configuration()['name']}"
    for network in _docker("network", "ls", "--quiet", "--filter", label).stdout.split():
        succeeds("docker", "network", "rm", network)


def succeeds(*command: str, seconds: float = _ANSWER_SECONDS) -> bool:
    """Whether a command ends well, and in time."""
    try:
        result = subprocess.run(command, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return False
    return result.returncode == 0


def _configuration() -> dict[str, Any]:
    """The lab's Compose file as Compose reads it, without what is started on demand."""
    read: dict[str, Any] = json.loads(compose("config", "--format", "json", profiles=False))
    return read


def _docker(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)


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
