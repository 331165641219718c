"""What the target's container is started with besides its settings: another build, its CPUs.

A label on the container tells it to every later command.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spikelab import paths
from spikelab.cores import Cores, cpu_list
from spikelab.errors import UsageError
from spikelab.record import write_json
from spikelab.runtime import TargetBuild
from spikelab.runtime.builds import fingerprint, services_of
from spikelab.runtime.replicas import REPLICA

LABEL = "spikelab.target"
_CPUSET_FILE = paths.COMPOSE_FILE.with_name("docker-compose.cpuset.yml")
_OVERRIDE = "target-override.json"
# Where the lab's image has its jar: targets/spring-tomcat/Dockerfile.
_JAR_IN_IMAGE = "/app/spring-tomcat.jar"
_READABLE_BY_ALL = 0o004


@dataclass(frozen=True)
class ContainerStart:
    """`files`: override files on top of the lab's Compose file, with the variables `env`. `label`:
    what they come to; empty for the lab's own build on all CPUs. `services`: others than the
    target that the files change."""

    files: tuple[Path, ...]
    env: dict[str, str]
    label: Mapping[str, Any]

    @property
    def services(self) -> list[str]:
        return list(self.label.get("services", ()))

    def write(self) -> None:
        """Writes the last of the files, which is the lab's own."""
        if self.files:
            self.files[-1].parent.mkdir(parents=True, exist_ok=True)
            targets = ["target", *(name for name in self.services if REPLICA.fullmatch(name))]
            write_json(self.files[-1], {"services": dict.fromkeys(targets, self._target())})

    def _target(self) -> dict[str, Any]:
        target: dict[str, Any] = {"labels": {LABEL: _literal(json.dumps(self.label))}}
        if image := self.label["image"]:
            target["image"] = _literal(image)
        if cpus := self.label["cpus"]:
            # docker-compose.cpuset.yml has the target; its replicas are as bound.
            target["cpuset"] = cpus
        if jar := self.label["jar_file"]:
            mount = {"type": "bind", "source": _literal(jar), "target": _JAR_IN_IMAGE}
            target["volumes"] = [{**mount, "read_only": True}]
        return target


def container_start(
    build: TargetBuild | None,
    cores: Cores | None,
    image_id: str | None,
    folder: Path = paths.STATE,
) -> ContainerStart:
    """How to start the target so. `image_id`: of the build's image, as far as it is here. `folder`:
    for a file of the lab's own."""
    build = build or TargetBuild()
    if build == TargetBuild() and cores is None:
        return ContainerStart((), {}, {})
    label = {
        **fingerprint(build),
        "image_id": image_id,
        "jar_file": str(build.jar) if build.jar else None,
        "cpus": cpu_list(cores.target) if cores else None,
        "services": other_services(build),
    }
    files = (*build.compose, *((_CPUSET_FILE,) if cores else ()), folder / _OVERRIDE)
    return ContainerStart(files, cpu_variables(cores), label)


def with_cpuset(argv: Sequence[str]) -> list[str]:
    """A `docker compose` command with the file that binds driver and target."""
    place = argv.index("-f") + 2
    return [*argv[:place], "-f", str(_CPUSET_FILE), *argv[place:]]


def cpu_variables(cores: Cores | None) -> dict[str, str]:
    """What docker-compose.cpuset.yml reads."""
    if cores is None:
        return {}
    return {"DRIVER_CPUS": cpu_list(cores.driver), "TARGET_CPUS": cpu_list(cores.target)}


def other_services(build: TargetBuild) -> list[str]:
    """What its override files change besides the target and the drivers, which start later."""
    started_otherwise = {"target", "k6", "locust", "locust-worker"}
    named = {name for file in build.compose for name in services_of(file)}
    return sorted(named - started_otherwise)


def require_mountable(build: TargetBuild) -> None:
    """Raises UsageError for a jar that the container's own user could not read."""
    if build.jar and not build.jar.stat().st_mode & _READABLE_BY_ALL:
        raise UsageError(
            f"jar {paths.shown(build.jar)}: the container's user may not read it: "
            f"chmod o+r {paths.shown(build.jar)}"
        )


def _literal(text: str) -> str:
    """As it stands: Compose would fill in what follows a dollar sign."""
    return text.replace("$", "$$")
