"""What the docker runtime asks of the engine, by a `docker` that writes down its calls: faults that
an engine seldom has, and what must not happen at all."""

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from spikelab import paths
from spikelab.machine import Cores
from spikelab.settings import PORT_NAMES
from spikelab.stack import engine
from spikelab.stack.base import DriverCommand
from spikelab.stack.containers import CPUSET_FILE, Containers
from spikelab.stack.docker import DockerRuntime
from spikelab.stack.locks import changing_the_stack
from tests.support.ports import free_ports

CORES = Cores(driver=(0,), target=(1,))


@pytest.mark.parametrize(
    "said", ['{"Service": "a"}\n{"Service": "b"}\n', '[{"Service": "a"}, {"Service": "b"}]']
)
def test_containers_are_listed_by_every_version_of_compose(said: str) -> None:
    assert Containers.parse(said).rows == {"a": {"Service": "a"}, "b": {"Service": "b"}}
    assert Containers.parse("").rows == Containers.parse("[]").rows == {}


def test_a_bound_driver_reads_the_published_override_before_its_own_words() -> None:
    free = DockerRuntime().driver("k6", ["run", "-f"], {}, "id")
    bound = DockerRuntime().driver("k6", ["run", "-f"], {}, "id", cores=CORES)
    assert isinstance(bound, DriverCommand)
    place = free.argv.index("-f") + 2
    cpuset = ["-f", str(CPUSET_FILE)]
    assert [*bound.argv] == [*free.argv[:place], *cpuset, *free.argv[place:]]
    files = [
        word for before, word in zip(bound.argv, bound.argv[1:], strict=False) if before == "-f"
    ]
    assert files[0] == str(paths.COMPOSE_FILE)
    named = yaml.safe_load(Path(files[1]).read_text())["services"]
    assert set(named) == {"target", "k6", "locust", "locust-worker"}
    assert bound.env["DRIVER_CPUS"] == "0"


# What it prints for a call is in the file that the call's first known word names.
DOCKER = """#!/bin/sh
here=$(dirname "$0")
echo "$*" >> "$here/calls"
for word; do
  if [ -e "$here/$word.fails" ]; then cat "$here/$word.fails" >&2; exit 1; fi
  if [ -e "$here/$word.says" ]; then cat "$here/$word.says"; exit 0; fi
done
"""


class Docker:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program = folder / "docker"
        program.write_text(DOCKER)
        program.chmod(0o755)
        self.says("config", json.dumps({"name": "lab", "services": {}}))

    def says(self, word: str, text: str) -> None:
        (self.folder / f"{word}.says").write_text(text)

    def fails(self, word: str, text: str) -> None:
        (self.folder / f"{word}.fails").write_text(text)

    def runs(self, *rows: dict[str, Any]) -> None:
        self.says("ps", "\n".join(json.dumps({"Status": "", "ID": "1", **row}) for row in rows))

    def calls(self, word: str = "") -> list[str]:
        file = self.folder / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line for line in lines if word in line.split() or not word]


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Docker:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(paths, "STATE", tmp_path / "state")
    for name, port in zip(PORT_NAMES, free_ports(len(PORT_NAMES)), strict=True):
        monkeypatch.setenv(name, str(port))
    return Docker(folder)


def row(service: str, state: str = "running", **more: Any) -> dict[str, Any]:
    return {"Service": service, "State": state, **more}


def network(name: str, *ports: dict[str, Any]) -> dict[str, Any]:
    return {name: row(name, Publishers=list(ports))}


def published(port: int, url: str = "127.0.0.1") -> dict[str, Any]:
    return {"URL": url, "TargetPort": port, "PublishedPort": 40000 + port, "Protocol": "tcp"}


def test_no_docker_is_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert engine.find_engine() is None


def test_a_compose_file_that_docker_refuses_is_a_reason_to_take_the_host(docker: Docker) -> None:
    docker.fails("config", "yaml: unknown tag !reset\n")
    reason = engine.unusable()
    assert reason == "docker compose config failed: yaml: unknown tag !reset"


def test_what_a_light_stack_leaves_out_is_taken_away_where_it_has_stopped(docker: Docker) -> None:
    docker.runs(row("influxdb", "exited"), row("grafana"))
    DockerRuntime().up(["influxdb", "grafana"])
    assert [line.split("rm ")[1] for line in docker.calls("rm")] == ["--force influxdb"]
    (up,) = docker.calls("up")
    assert up.endswith(" prometheus target sockets-exporter")


def test_grafana_does_not_bring_influxdb_back(docker: Docker) -> None:
    docker.runs()
    DockerRuntime().up(["influxdb"])
    assert "--scale influxdb=0" in docker.calls("up")[0]


def test_nothing_is_looked_at_before_another_command_has_changed_the_stack(docker: Docker) -> None:
    docker.runs()
    runtime = DockerRuntime()
    starts = [
        threading.Thread(target=runtime.up, args=([],)),
        threading.Thread(target=runtime.require, args=(["proxy"],)),
    ]
    with changing_the_stack():
        for each in starts:
            each.start()
        time.sleep(0.5)
        assert docker.calls() == []
    for each in starts:
        each.join(30)
    assert len(docker.calls("up")) == 2


def test_down_takes_the_networks_of_override_files(docker: Docker) -> None:
    docker.runs()
    docker.says("ls", "0a1b\n")
    DockerRuntime().down()
    calls = docker.calls()
    assert calls[-2:] == [
        "network ls --quiet --filter label=com.docker.compose.project=lab",
        "network rm 0a1b",
    ]
    assert " down " in calls[-4]


def test_replicas_of_somebody_else_make_it_another_start(docker: Docker) -> None:
    docker.says("inspect", '{"Labels": {}}')
    docker.runs(row("target"))
    assert DockerRuntime().target_started_with(None, None)
    docker.runs(row("target"), row("target-2", "exited"))
    assert DockerRuntime().target_started_with(None, None)
    ports = [published(8081), published(9100)]
    docker.runs(row("target"), row("target-network-2", Publishers=ports), row("target-2"))
    assert not DockerRuntime().target_started_with(None, None)
    assert Containers({"target-2": row("target-2")}).strays(["target-2"]) == []


def test_replicas_of_somebody_else_are_taken_away_at_a_restart(docker: Docker) -> None:
    docker.says("inspect", '{"Labels": {}}')
    docker.runs(row("target"))
    DockerRuntime().restart_target({})
    ports = [published(8081), published(9100)]
    docker.runs(row("target"), row("target-network-2", Publishers=ports), row("target-2"))
    DockerRuntime().restart_target({})
    assert ["--remove-orphans" in line for line in docker.calls("up")] == [False, True]


def test_a_replica_whose_ports_are_not_told_is_unseen() -> None:
    whole = network("target-network-2", published(8081), published(9100, "::1"))
    found = ("http://127.0.0.1:48081", "http://[::1]:49100")
    assert Containers(whole).replica_urls() == [found]
    assert Containers(whole).unseen() == []
    for ports in ([], [published(8081)], [{"TargetPort": 8081}, {"PublishedPort": 9}, {"URL": ""}]):
        broken = network("target-network-3", *ports)
        both = Containers({**whole, **broken})
        assert both.replica_urls() == [found]
        assert both.unseen() == ["target-network-3"]


@pytest.mark.parametrize("address", ["", "192.0.2.7"])
def test_the_lab_s_drivers_get_a_way_out_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("OWN_TARGET_ADDRESS", address)
    command = DockerRuntime().driver("k6", [], {}, "t").argv
    assert any(word.endswith("docker-compose.own-target.yml") for word in command) == bool(address)
