"""What can be done to a stack of containers: kill, fill a disk, cut the network."""

import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from spikelab.errors import LabError
from spikelab.http_client import client
from tests.compose.conftest import Stack, make_stack
from tests.compose.images.stand_ins import Images
from tests.reliability import seconds_until

# Volumes of the stores, each a disk of its own that is full soon.
DISKS = {
    "prometheus": "prometheus-data",
    "influxdb": "influxdb-data",
    "grafana": "grafana-data",
}
_DISK_OPTIONS = "size=192m,mode=0777"
_TITLES = {"prometheus": "Prometheus", "influxdb": "InfluxDB", "grafana": "Grafana"}
_HEALTH = {
    "prometheus": ("PROMETHEUS_PORT", "/-/ready"),
    "influxdb": ("INFLUXDB_PORT", "/ping"),
    "grafana": ("GRAFANA_PORT", "/api/health"),
    "target": ("TARGET_MANAGEMENT_PORT", "/actuator/health/readiness"),
}
_RECOVERY_SECONDS = 60
_IDLE = ("tail", "-f", "/dev/null")


@dataclass(frozen=True)
class Rig:
    """A stack whose stores lie on small disks, and what `./lab up` said, twice at once."""

    stack: Stack
    ups: Sequence[subprocess.CompletedProcess[str]]
    up_seconds: float

    @property
    def without(self) -> list[str]:
        """What `./lab up` has to leave out here."""
        return [] if self.stack.images.grafana else ["--without", "grafana"]

    def up(self) -> float:
        """`./lab up`; the seconds that it took."""
        begun = time.monotonic()
        result = self.stack.lab("up", *self.without)
        assert result.returncode == 0, result.stderr
        return time.monotonic() - begun

    def answers(self, service: str) -> bool:
        port, path = _HEALTH[service]
        try:
            return client.get(self.stack.url(port) + path, timeout=2).is_success
        except httpx.HTTPError:
            return False

    def recovery(self, service: str) -> float:
        """The seconds until it serves again."""
        now = time.time()
        return seconds_until(
            lambda: self.serves(service, now), _RECOVERY_SECONDS, f"{service} serves again"
        )

    def title(self, service: str) -> str:
        """Its name as people write it."""
        return _TITLES.get(service, f"the {service}")

    def serves(self, service: str, since_seconds: float) -> bool:
        """Whether it answers; a store also whether it has something of after that moment."""
        try:
            return self.answers(service) and self._has_new(service, since_seconds)
        except LabError:
            return False

    def _has_new(self, service: str, since_seconds: float) -> bool:
        match service:
            case "prometheus":
                last = self.stack.prometheus.value("max(timestamp(up))")
                return (last or 0) > since_seconds
            case "influxdb":
                moment = round(time.time() * 1000)
                self.stack.influxdb.write(f"probe,moment={moment} value=1i {moment}")
                found = self.stack.influxdb.query(f"SELECT * FROM probe WHERE time = {moment}ms")
                return bool(found)
        return True

    def container(self, service: str) -> str:
        return f"{self.stack.project}-{service}-1"

    def kill(self, *containers: str) -> None:
        """SIGKILL to the containers' first processes, all at once. (The engine's own `kill` counts
        as a stop that somebody wanted.)"""
        pids = docker("inspect", "--format", "{{.State.Pid}}", *containers).split()
        docker("exec", self.helper, "kill", "-9", *pids)

    def kill_and_wait(self, service: str) -> float:
        """Kills it; the seconds until the one that is started again answers."""
        container = self.container(service)
        before = self._started_at(container)
        self.kill(container)
        begun = time.monotonic()
        seconds_until(
            lambda: self._started_at(container) != before, 30, f"{service} is started again"
        )
        self.recovery(service)
        return time.monotonic() - begun

    def file_of(self, record: dict[str, Any], name: str) -> Path:
        """A file of a run."""
        return self.stack.lab.home / "results" / str(record["testid"]) / name

    def driver(self) -> str:
        """The container of the driver that runs."""
        (name,) = self.leftover_drivers()
        return name

    def leftover_drivers(self) -> list[str]:
        return self.stack.containers("--filter", "label=com.docker.compose.oneoff=True")

    @staticmethod
    def _started_at(container: str) -> str:
        return docker("inspect", "--format", "{{.State.StartedAt}} {{.State.Running}}", container)

    def fill(self, *services: str) -> None:
        """Leaves no byte free on their disks."""
        fill = "dd if=/dev/zero of=/{0}/full bs=1M 2>/dev/null"
        self._help("; ".join([*(fill.format(DISKS[name]) for name in services), "sync"]))

    def free(self, *services: str) -> None:
        self._help("; ".join(f"rm /{DISKS[name]}/full" for name in services))

    @property
    def helper(self) -> str:
        """The container that keeps the disks, and may kill any process of the engine's machine."""
        return f"{self.stack.project}-helper"

    def _help(self, command: str) -> None:
        docker("exec", self.helper, "sh", "-c", command)

    @contextmanager
    def cut_off(self, container: str) -> Iterator[None]:
        """No packet passes between that container and the target: neither hears of it."""
        template = "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}"
        addresses = docker("inspect", "--format", template, container).split()
        self._blackhole("add", addresses)
        try:
            yield
        finally:
            self._blackhole("del", addresses)

    def _blackhole(self, verb: str, addresses: Sequence[str]) -> None:
        network = self.container("target-network")
        image = docker("inspect", "--format", "{{.Config.Image}}", network).strip()
        command = "; ".join(f"ip route {verb} blackhole {address}/32" for address in addresses)
        options = ["--rm", "--network", f"container:{network}", "--cap-add", "NET_ADMIN"]
        docker("run", *options, image, "sh", "-c", command)


@contextmanager
def make_rig(home: Path, images: Images) -> Iterator[Rig]:
    with make_stack(home, images) as stack, _disks(stack):
        begun = time.monotonic()
        rig = Rig(stack, [], 0)
        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(stack.lab, "up", *rig.without) for _ in range(2)]
        yield Rig(stack, [each.result() for each in both], time.monotonic() - begun)


@contextmanager
def _disks(stack: Stack) -> Iterator[None]:
    """The stores' volumes as small disks. The helper keeps them when all others die: they are in
    memory."""
    mounts: list[str] = []
    for name in DISKS.values():
        volume = f"{stack.project}_{name}"
        labels = {"project": stack.project, "volume": name}
        docker(
            *("volume", "create"),
            *(f"--label=com.docker.compose.{key}={value}" for key, value in labels.items()),
            *(f"--opt={option}" for option in ("type=tmpfs", "device=tmpfs")),
            *("--opt", f"o={_DISK_OPTIONS}", volume),
        )
        mounts += ["--volume", f"{volume}:/{name}"]
    image = stack.compose("config", "--images", "target-network").stdout.split()[0]
    helper = Rig(stack, [], 0).helper
    options = [
        "--detach",
        "--name",
        helper,
        "--network",
        "none",
        "--pid",
        "host",
        "--cap-add",
        "KILL",
    ]
    docker("run", *options, *mounts, image, *_IDLE)
    try:
        yield
    finally:
        docker("rm", "--force", helper)
        stack.remove()


def docker(*arguments: str) -> str:
    """What `docker …` prints; it must end well."""
    result = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"docker {' '.join(arguments)}: {result.stderr}"
    return result.stdout
