"""Stacks of the tests' own on a container engine: real containers, own project, ports, secrets."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from spikelab import paths
from spikelab.settings import PORT_NAMES
from spikelab.stack.engine import compose_command, succeeds
from spikelab.stack.locks import alone
from spikelab.stores import InfluxDB, Prometheus
from tests.compose.images.stand_ins import Images, provide
from tests.support.lab import WITHOUT_REPORTS, Lab, java_in_containers
from tests.support.ports import free_ports

_PORTS = (*PORT_NAMES, "LOCUST_PORT")
# What an `up` without names starts, which is the stack without what is started on demand.
_GRAFANA = "grafana"


@dataclass(frozen=True)
class Stack:
    """One project on the engine, driven by `docker compose` and by ./lab as a user would."""

    lab: Lab
    images: Images
    # Seconds that each `up` took, the first one from nothing.
    ups: list[float] = field(default_factory=list)

    @property
    def project(self) -> str:
        return self.lab.env["COMPOSE_PROJECT_NAME"]

    @property
    def prometheus(self) -> Prometheus:
        return self.lab.prometheus

    @property
    def influxdb(self) -> InfluxDB:
        return self.lab.influxdb

    def url(self, port_name: str) -> str:
        return self.lab.url(port_name)

    def compose(
        self,
        *arguments: str,
        files: Sequence[Path] = (),
        settings: dict[str, str] | None = None,
        timeout: float = 300,
        exit_code: int | None = 0,
    ) -> subprocess.CompletedProcess[str]:
        """`docker compose …` with the lab's file and these on top; asserts its exit code, unless
        None is expected. `settings`: further variables, as a user would set them."""
        result = subprocess.run(
            compose_command(*arguments, files=files, profiles=False),
            env={**self.lab.env, **(settings or {})},
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        said = f"{' '.join(arguments)}: {result.returncode}\n{result.stdout}\n{result.stderr}"
        assert exit_code in (None, result.returncode), said
        return result

    def exec(self, service: str, *command: str) -> str:
        """What a command inside a service's container prints."""
        return self.compose("exec", "--no-TTY", service, *command).stdout

    def services(self) -> list[str]:
        """What a plain `up` starts, less Grafana where its image is not to be had."""
        found = self.compose("config", "--services").stdout.split()
        return [name for name in found if name != _GRAFANA or self.images.grafana]

    def up(self, *arguments: str, settings: dict[str, str] | None = None) -> None:
        """`up --wait`, to healthy: of everything, or of what the arguments name."""
        services = arguments or self.services()
        begun = time.monotonic()
        self.compose("up", "--detach", "--wait", *services, settings=settings)
        self.ups.append(time.monotonic() - begun)

    def build(self) -> None:
        """Builds the lab's own images, from the engine's cache where it has them: of stacks that
        are made at once, the others wait for what the first one leaves there."""
        with alone(paths.BUILD / "images.lock", "others are building the lab's images"):
            self.compose("build", timeout=900)

    def containers(self, *options: str) -> list[str]:
        return self._list("ps", "--all", "--format", "{{.Names}}", *options)

    def networks(self) -> list[str]:
        return self._list("network", "ls", "--format", "{{.Name}}")

    def volumes(self) -> list[str]:
        return self._list("volume", "ls", "--format", "{{.Name}}")

    def mounted(self) -> set[str]:
        """The volumes that its containers use, those without a name of ours among them."""
        template = '{{range .Mounts}}{{if eq .Type "volume"}}{{println .Name}}{{end}}{{end}}'
        return set(_docker("inspect", "--format", template, *self.containers()))

    def remove(self) -> None:
        """Takes it off the engine whole: volumes and the images that were built for it too."""
        what = ("--volumes", "--remove-orphans", "--rmi", "local")
        # Nothing is kept, so nothing is waited for.
        self.compose("--profile", "*", "down", "--timeout", "0", *what, timeout=120)

    def _list(self, *command: str) -> list[str]:
        return _docker(*command, "--filter", f"label=com.docker.compose.project={self.project}")


def _docker(*command: str) -> list[str]:
    """The words that `docker` prints."""
    return subprocess.run(
        ["docker", *command], capture_output=True, text=True, check=True
    ).stdout.split()


@contextmanager
def make_stack(home: Path, images: Images, **settings: str) -> Iterator[Stack]:
    """A stack that is not up yet, with its images built; the engine has nothing of it after the
    block. `home`: folder of ./lab's state and results. `settings`: as in compose/.env."""
    ports = free_ports(len(_PORTS))
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TOMCAT_", "TARGET_", "LAB_", "COMPOSE_"))
    }
    lab = Lab(
        {
            **inherited,
            **dict(zip(_PORTS, map(str, ports), strict=True)),
            "COMPOSE_PROJECT_NAME": f"spikelab-test-{os.getpid()}-{ports[0]}",
            "LAB_HOME": str(home),
            "LAB_RUNTIME": "docker",
            **WITHOUT_REPORTS,
            **java_in_containers,
            **images.settings,
            **settings,
        }
    )
    instance = Stack(lab, images)
    try:
        instance.build()
        yield instance
    finally:
        instance.remove()
    assert instance.containers() + instance.networks() + instance.volumes() == []


@pytest.fixture(scope="session", autouse=True)
def images(request: pytest.FixtureRequest) -> Images:
    """The images that the Compose file names: those that are here, those that can be pulled, and
    stand-ins for the others."""
    if shutil.which("docker") is None or not succeeds("docker", "info"):
        pytest.skip("no container engine answers: .ci/run starts one as root on Debian")
    if not succeeds("docker", "compose", "version"):
        pytest.skip("docker has no compose plugin: .ci/run builds one")
    found = provide()
    lines = [f"stand-in {name}: {version}" for name, version in found.stand_ins.items()]
    lines += [f"built {name} in {took:.0f} s" for name, took in found.seconds.items()]
    if not found.grafana:
        lines.append("without grafana: no image of it, and no GRAFANA_HOME to make one of")
    if lines:
        _say(request, *lines)
    return found


def _say(request: pytest.FixtureRequest, *lines: str) -> None:
    """Past what pytest keeps for itself."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print("", *(f"compose: {text}" for text in lines), sep="\n", file=sys.stderr)


@pytest.fixture(scope="package")
def stack(
    images: Images, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Stack]:
    """A stack that is up and healthy, for all tests of this folder."""
    with make_stack(tmp_path_factory.mktemp("compose"), images) as instance:
        instance.up()
        _say(request, f"from nothing to healthy in {instance.ups[0]:.1f} s")
        yield instance


@pytest.fixture(scope="package")
def docker(stack: Stack) -> Lab:
    """The same stack, found healthy by ./lab, which speaks to it from now on: one that it does
    not know it would start, with all components."""
    result = stack.lab("up", "--without", "grafana")
    assert result.returncode == 0, result.stderr
    return stack.lab
