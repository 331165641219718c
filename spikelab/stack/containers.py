"""The stack's containers as Compose lists them, and what the target's were started with.

A target's start is more than its settings: another build, its CPUs. A label on the container tells
it to every later command. Replicas are the further targets of compose/docker-compose.replicas.yml:
each is of the target's build, and beside it run its network's service and its exporter.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from spikelab import paths
from spikelab.machine import Cores, cpu_list
from spikelab.results.files import write_json
from spikelab.settings import COMPONENTS, load_target_declaration
from spikelab.stack.base import REPLICA
from spikelab.stack.builds import TargetBuild, services_of
from spikelab.stack.engine import SERVICES, compose, image_id, inspected

_REPLICA_NETWORK = re.compile(r"target-network-\d+")
_OF_REPLICA = re.compile(r"(target|target-network|sockets-exporter)-\d+")
_MANAGEMENT_PORT = 8081
_SOCKETS_PORT = 9100
# Services whose network is another's: made anew with it.
_FOLLOWERS = {"target-network": ("sockets-exporter",)}
_STARTED_LATER = {"k6", "locust", "locust-worker"}
_LABEL = "spikelab.target"
# Binds driver and target to their CPUs.
CPUSET_FILE = paths.COMPOSE_FILE.with_name("docker-compose.cpuset.yml")
_OVERRIDE = "target-override.json"
# Where the lab's image has its jar: targets/spring-tomcat/Dockerfile.
_JAR_IN_IMAGE = "/app/spring-tomcat.jar"

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Containers:
    """What `docker compose ps` said of each service's container."""

    rows: Mapping[str, Row]

    @classmethod
    def listed(cls) -> "Containers":
        """As they are now, stopped ones included."""
        return cls.parse(compose("ps", "--all", "--format", "json"))

    @classmethod
    def parse(cls, said: str) -> "Containers":
        """From rows one a line, or before Compose 2.21 all of them in one list."""
        found = [json.loads(each) for each in said.splitlines() if each.strip()]
        rows = [row for each in found for row in (each if isinstance(each, list) else [each])]
        return cls({row["Service"]: row for row in rows})

    def running(self, kind: re.Pattern[str] | None = None) -> list[str]:
        """The services that run: all, or those of a kind."""
        return sorted(
            name
            for name, row in self.rows.items()
            if row["State"] == "running" and (kind is None or kind.fullmatch(name))
        )

    def components(self) -> set[str]:
        """The components that run."""
        running = {*self.running()}
        return {name for name in COMPONENTS if SERVICES[name] in running}

    def replica_urls(self) -> list[tuple[str, str]]:
        """Where each replica tells its metrics and its sockets': their ports are any that were
        free. Without those of which the engine does not say it."""
        found = [_urls(self.rows[name]) for name in self.running(_REPLICA_NETWORK)]
        return [urls for urls in found if urls]

    def unseen(self) -> list[str]:
        """The networks of running replicas that cannot be looked at."""
        return [name for name in self.running(_REPLICA_NETWORK) if _urls(self.rows[name]) is None]

    def strays(self, wanted: Collection[str]) -> list[str]:
        """Running services of replicas that are none of those wanted: somebody else started
        them."""
        return [name for name in self.running(_OF_REPLICA) if name not in wanted]

    def published_ports(self) -> set[int]:
        """This machine's ports that they have."""
        return {port.get("PublishedPort", 0) for row in self.rows.values() for port in _ports(row)}

    def process_ids(self) -> dict[str, int]:
        """The first process of each component and replica that can be seen on this machine."""
        replicas = {name: name for name in self.rows if REPLICA.fullmatch(name)}
        ids = {
            name: int(inspected("container", row["ID"], "{{json .State.Pid}}") or 0)
            for name, service in (SERVICES | replicas).items()
            if (row := self.rows.get(service))
        }
        return {name: pid for name, pid in ids.items() if pid and psutil.pid_exists(pid)}

    def target_label(self, service: str = SERVICES["target"]) -> dict[str, Any]:
        """What the target, or a replica, was started with besides its settings; empty: its own
        build on all CPUs."""
        labels = self._configured(service).get("Labels") or {}
        label: dict[str, Any] = json.loads(labels.get(_LABEL) or "{}")
        return label

    def target_settings(self) -> dict[str, str]:
        """The settings that the target runs with, whatever compose/.env says now."""
        pairs = (text.partition("=") for text in self._configured("target").get("Env") or ())
        values = {name: value for name, _, value in pairs}
        return load_target_declaration().given(values)

    def target_started_so(self, start: "TargetStart") -> bool:
        """Whether target and replicas run as this start would have them, and no others."""
        return (
            not self.strays(start.services)
            and not self.unseen()
            and all(
                self.target_label(name) == start.label
                for name in ("target", *self.running(REPLICA))
            )
        )

    def changed_with_target(self, named: Collection[str], start: "TargetStart") -> list[str]:
        """The services among these to be made anew beside the target: the lab's own where they
        run, and what this start's files bring along."""
        own = {*services_of(paths.COMPOSE_FILE)}
        follow = {each for name in named for each in _FOLLOWERS.get(name, ())}
        running = {*self.running()}
        return sorted(({*named, *follow} & own & running) | ({*start.services} - own))

    def _configured(self, service: str) -> dict[str, Any]:
        """How a service's container is configured; empty where there is none."""
        row = self.rows.get(service)
        return (inspected("container", row["ID"], "{{json .Config}}") if row else None) or {}


@dataclass(frozen=True)
class TargetStart:
    """How a target's container is started: `files` on top of the lab's Compose file, with the
    variables `env`. `label`: what they come to; empty for the lab's own build on all CPUs."""

    files: tuple[Path, ...]
    env: dict[str, str]
    label: Mapping[str, Any]

    @classmethod
    def of(cls, build: TargetBuild | None, cores: Cores | None) -> "TargetStart":
        build = build or TargetBuild()
        if build == TargetBuild() and cores is None:
            return cls((), {}, {})
        named = {name for file in build.compose for name in services_of(file)}
        label = {
            **build.fingerprint(),
            "image_id": image_id(build.image) if build.image else None,
            "jar_file": str(build.jar) if build.jar else None,
            "cpus": cpu_list(cores.target) if cores else None,
            "services": sorted(named - _STARTED_LATER - {"target"}),
        }
        cpuset = (CPUSET_FILE,) if cores else ()
        return cls((*build.compose, *cpuset, paths.STATE / _OVERRIDE), cpu_variables(cores), label)

    @property
    def services(self) -> list[str]:
        """Others than the target and the drivers that the files change."""
        return list(self.label.get("services", ()))

    def write(self) -> None:
        """Writes the last of the files, which is the lab's own."""
        if self.files:
            self.files[-1].parent.mkdir(parents=True, exist_ok=True)
            targets = ["target", *(name for name in self.services if REPLICA.fullmatch(name))]
            write_json(self.files[-1], {"services": dict.fromkeys(targets, self._target())})

    def _target(self) -> dict[str, Any]:
        target: dict[str, Any] = {"labels": {_LABEL: _literal(json.dumps(self.label))}}
        if image := self.label["image"]:
            target["image"] = _literal(image)
        if cpus := self.label["cpus"]:
            # docker-compose.cpuset.yml has the target; its replicas are as bound.
            target["cpuset"] = cpus
        if jar := self.label["jar_file"]:
            mount = {"type": "bind", "source": _literal(jar), "target": _JAR_IN_IMAGE}
            target["volumes"] = [{**mount, "read_only": True}]
        return target


def cpu_variables(cores: Cores | None) -> dict[str, str]:
    """What docker-compose.cpuset.yml reads."""
    if cores is None:
        return {}
    return {"DRIVER_CPUS": cpu_list(cores.driver), "TARGET_CPUS": cpu_list(cores.target)}


def _ports(row: Row) -> Sequence[Mapping[str, Any]]:
    return row.get("Publishers") or ()


def _urls(network: Row) -> tuple[str, str] | None:
    """Of a replica's network: the addresses of the management port and of the exporter."""
    urls = {
        port.get("TargetPort"): _url(port) for port in _ports(network) if port.get("PublishedPort")
    }
    management, sockets = urls.get(_MANAGEMENT_PORT), urls.get(_SOCKETS_PORT)
    return (management, sockets) if management and sockets else None


def _url(port: Mapping[str, Any]) -> str | None:
    host = port.get("URL")
    if host and ":" in host:
        host = f"[{host}]"
    return f"http://{host}:{port['PublishedPort']}" if host else None


def _literal(text: str) -> str:
    """As it stands: Compose would fill in what follows a dollar sign."""
    return text.replace("$", "$$")
