"""Calls of `docker compose` and `docker`, with the lab's Compose file."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spikelab import paths
from spikelab.errors import LabError
from spikelab.runtime import COMPONENTS, ON_DEMAND

# Each component's service.
SERVICES = {name: name for name in COMPONENTS} | {"sockets": "sockets-exporter"}
# On images that the lab's tests build where the official ones cannot be had.
STAND_IN_LABEL = "spikelab.stand-in"
_ANSWER_SECONDS = 10


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


def containers() -> dict[str, dict[str, Any]]:
    """Service → what `docker compose ps` says of its container."""
    return rows_of(compose("ps", "--all", "--format", "json"))


def published_ports(rows: Mapping[str, Mapping[str, Any]]) -> set[int]:
    """This machine's ports that these containers have."""
    rows_of_ports = (row.get("Publishers") or () for row in rows.values())
    return {port.get("PublishedPort", 0) for ports in rows_of_ports for port in ports}


def rows_of(said: str) -> dict[str, dict[str, Any]]:
    """Service → its row: one a line, or before Compose 2.21 all of them in one list."""
    found = [json.loads(each) for each in said.splitlines() if each.strip()]
    rows = [row for each in found for row in (each if isinstance(each, list) else [each])]
    return {row["Service"]: row for row in rows}


def inspected(kind: str, name: str, template: str) -> Any:
    """What `docker inspect` knows of a container or image, by a template that prints JSON; None
    where there is none."""
    said = subprocess.run(
        ["docker", kind, "inspect", "--format", template, name],
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(said.stdout) if said.returncode == 0 else None


def has_image(name: str) -> bool:
    """Whether the engine has it; a stand-in of the tests does not count."""
    labels = inspected("image", name, "[{{json .Config.Labels}}]")
    return labels is not None and STAND_IN_LABEL not in (labels[0] or {})


def pulled_images() -> list[str]:
    """The images of a plain `up` that are not built here."""
    services = json.loads(compose("config", "--format", "json", profiles=False))["services"]
    return sorted({each["image"] for each in services.values() if "build" not in each})


def remove_networks() -> None:
    """Those of the project that the lab's own file does not name and nobody uses."""
    project = json.loads(compose("config", "--format", "json", profiles=False))["name"]
    label = f"label=com.docker.compose.project={project}"
    said = subprocess.run(
        ["docker", "network", "ls", "--quiet", "--filter", label],
        capture_output=True,
        text=True,
        check=False,
    )
    for network in said.stdout.split():
        succeeds("docker", "network", "rm", network)


def process_id(container: str) -> int:
    """Its first process on this machine; 0 where it has none or it can't be told."""
    return int(inspected("container", container, "{{json .State.Pid}}") or 0)


def succeeds(*command: str, seconds: float = _ANSWER_SECONDS) -> bool:
    """Whether a command ends well, and in time."""
    try:
        return (
            subprocess.run(command, capture_output=True, timeout=seconds, check=False).returncode
            == 0
        )
    except subprocess.TimeoutExpired:
        return False
