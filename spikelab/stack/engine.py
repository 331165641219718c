"""The targets of compose/docker-compose.replicas.yml beside the first."""

# - The container engine itself: whether it can be used, its machine, its images.
# - Calls of `docker compose` and `docker`, with the lab's Compose file.
# - What the target's container is started with besides its settings: another build, its CPUs. A
#   label on the container tells it to every later command.
# - What the target's container was started with, as the engine knows it.
import json
import os
import re
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from spikelab import paths
from spikelab.console import working
from spikelab.errors import LabError, UsageError
from spikelab.machine import Cores, cpu_list
from spikelab.results.run import write_json
from spikelab.settings import COMPONENTS, ON_DEMAND, load_target_declaration
from spikelab.stack.base import TargetBuild
from spikelab.stack.builds import fingerprint, services_of

# Their services: each is of the target's build, and beside it its network's and its exporter's.
REPLICA = re.compile(r"target-\d+")
_NETWORK = re.compile(r"target-network-\d+")
_ANY = re.compile(r"(target|target-network|sockets-exporter)-\d+")
_MANAGEMENT_PORT = 8081
_SOCKETS_PORT = 9100


def replicas(rows: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Where each tells its metrics and its sockets', from the engine's rows of containers: their
    ports are any that were free. Without those of which the engine does not say it."""
    found = [_urls(rows[name]) for name in _networks(rows)]
    return [urls for urls in found if urls]


def unseen(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The networks of running replicas that cannot be looked at."""
    return [name for name in _networks(rows) if _urls(rows[name]) is None]


def running_replicas(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return _running(rows, REPLICA)


def strays(rows: Mapping[str, Mapping[str, Any]], wanted: Collection[str]) -> list[str]:
    """Running services of replicas that are none of those wanted: somebody else started them."""
    return [name for name in _running(rows, _ANY) if name not in wanted]


def _networks(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return _running(rows, _NETWORK)


def _running(rows: Mapping[str, Mapping[str, Any]], kind: re.Pattern[str]) -> list[str]:
    return sorted(
        name for name, row in rows.items() if kind.fullmatch(name) and row["State"] == "running"
    )


def _urls(row: Mapping[str, Any]) -> tuple[str, str] | None:
    ports = row.get("Publishers") or ()
    urls = {port.get("TargetPort"): _url(port) for port in ports if port.get("PublishedPort")}
    management, sockets = urls.get(_MANAGEMENT_PORT), urls.get(_SOCKETS_PORT)
    return (management, sockets) if management and sockets else None


def _url(port: Mapping[str, Any]) -> str | None:
    host = port.get("URL")
    if host and ":" in host:
        host = f"[{host}]"
    return f"http://{host}:{port['PublishedPort']}" if host else None


_PULL_PROBE_SECONDS = 30
_PULL_SECONDS = 600


def cpus() -> frozenset[int]:
    """The CPUs that containers may be bound to."""
    engine = find_engine()
    return frozenset(range(engine.cpus if engine else 0))


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


# Services whose network is another's: made anew with it.
_FOLLOWERS = {"target-network": ("sockets-exporter",)}


def image_id(image: str) -> str | None:
    """An image's digest; None where it is not here."""
    found: str | None = inspected("image", image, "{{json .Id}}")
    return found


def _config(service: str) -> dict[str, Any]:
    """How a service's container is configured; empty where there is none."""
    row = containers().get(service)
    return (inspected("container", row["ID"], "{{json .Config}}") if row else None) or {}


def target_label(service: str = SERVICES["target"]) -> dict[str, Any]:
    """What the target, or a replica, was started with besides its settings; empty: its own build on
    all CPUs."""
    label: dict[str, Any] = json.loads((_config(service).get("Labels") or {}).get(LABEL) or "{}")
    return label


def running_settings() -> dict[str, str]:
    """The settings that the target runs with, whatever compose/.env says now."""
    pairs = (text.partition("=") for text in _config(SERVICES["target"]).get("Env") or ())
    values = {name: value for name, _, value in pairs}
    return load_target_declaration().given(values)


def changed_services(named: Collection[str], start: ContainerStart) -> list[str]:
    """The services among these to be made anew beside the target: the lab's own where they run,
    and what this start's files bring along."""
    own = {*services_of(paths.COMPOSE_FILE)}
    running = {name for name, row in containers().items() if row["State"] == "running"}
    follow = {each for name in named for each in _FOLLOWERS.get(name, ())}
    return sorted(({*named, *follow} & own & running) | ({*start.services} - own))
