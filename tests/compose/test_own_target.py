"""The lab around a service that is not its own: docs/own-service.md."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from spikelab import paths
from tests.compose.conftest import Stack
from tests.support.lab import wait_until

FILE = paths.COMPOSE_FILE.with_name("docker-compose.own-target.yml")
PORT = "3333"
SERVE = f"echo mine > /tmp/index.html && exec httpd -f -p {PORT} -h /tmp"


@dataclass(frozen=True)
class Service:
    """A container that the lab's project knows nothing of, in its network `load`."""

    name: str
    address: str

    @property
    def settings(self) -> dict[str, str]:
        return {
            "OWN_TARGET_ADDRESS": self.address,
            "OWN_TARGET_CONTAINER": self.name,
            "OWN_TARGET_PORTS": PORT,
        }


@pytest.fixture
def service(stack: Stack) -> Iterator[Service]:
    """Served while the stack has the override file on top; both are taken back."""
    name, network = f"{stack.project}-mine", f"{stack.project}_load"
    image = stack.compose("config", "--images", "target-network").stdout.split()[0]
    try:
        _docker("run", "--detach", "--name", name, "--network", network, image, "sh", "-c", SERVE)
        template = f'{{{{(index .NetworkSettings.Networks "{network}").IPAddress}}}}'
        mine = Service(name, _docker("inspect", "--format", template, name).strip())
        services = ("prometheus", "own-sockets")
        up = ("--profile", "own-sockets", "up", "--detach", "--wait", "--no-deps")
        stack.compose(*up, *services, files=[FILE], settings=mine.settings)
        yield mine
    finally:
        made = {name, f"{stack.project}-own-sockets-1"}
        for container in made & {*_docker("ps", "--all", "--format", "{{.Names}}").split()}:
            _docker("rm", "--force", container)
        stack.compose("up", "--detach", "--wait", "--no-deps", "prometheus")
        if f"{stack.project}_outside" in stack.networks():
            _docker("network", "rm", f"{stack.project}_outside")


def test_load_reaches_a_service_of_the_user_s_own_and_its_sockets_are_counted(
    stack: Stack, service: Service
) -> None:
    wait_until(lambda: _opened(stack) is not None, 30, "the exporter is scraped")
    before = _opened(stack) or 0
    stack.compose(
        *("--profile", "k6", "run", "--rm", "--no-TTY", "--no-deps", "k6", "run", "spike.js"),
        *("-e", f"BASE_URL=http://own-target:{PORT}", "-e", "REQUEST_PATH=/index.html"),
        *("-e", "VUS=20"),
        files=[FILE],
        settings=service.settings,
    )
    wait_until(lambda: (_opened(stack) or 0) >= before + 20, 30, "20 connections are counted")
    listening = f'sockets_listening{{target="own-target", port="{PORT}"}}'
    assert stack.prometheus.value(listening) == 1


def _opened(stack: Stack) -> float | None:
    return stack.prometheus.value('sockets_passive_opens_total{target="own-target"}')


def _docker(*command: str) -> str:
    return subprocess.run(["docker", *command], capture_output=True, text=True, check=True).stdout
