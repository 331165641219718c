"""What can be done to a stack of containers: kill, fill a disk, cut the network."""

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import httpx
import pytest

from spikelab.errors import LabError
from spikelab.health import client
from tests.compose.conftest import Stack, make_stack
from tests.compose.images.stand_ins import Images
from tests.reliability import seconds_until
from tests.support.faults import meanwhile, phase, plan, short_of_cpu

RATE = 50
ITSELF, UP = "by itself", "by `./lab up`"
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

T = TypeVar("T")


@dataclass(frozen=True)
class Faulty(Generic[T]):
    """A run in which something went wrong. `fault`: what that returned."""

    record: dict[str, Any]
    result: subprocess.CompletedProcess[str]
    fault: T


@dataclass(frozen=True)
class Rig:
    """A stack with a helper beside it that harms it. `without`: what `./lab up` leaves out."""

    stack: Stack
    without: Sequence[str]

    def needs_grafana(self) -> None:
        """Skips what is left of a test."""
        if not self.stack.images.grafana:
            pytest.skip("there is no image of Grafana")

    def plan(self, during_seconds: float = 6, after_seconds: float = 0) -> str:
        """The file of a plan with little load."""
        phases = [phase("before", 2, RATE), phase("during", during_seconds, RATE)]
        after = [phase("after", after_seconds, RATE)] if after_seconds else []
        return plan(self.stack.lab.home, phases=phases + after)

    def run_while(
        self, fault: Callable[[], T], plan: str, *options: str, exit_code: int = 0
    ) -> Faulty[T]:
        """`./lab run PLAN …`, and the fault a second after its phase `during` has begun. It ends
        with that exit code, or with 3 where the driver was short of CPU."""

        def after_a_second() -> T:
            time.sleep(1)
            return fault()

        returned = meanwhile(self.stack.lab, after_a_second)
        result = self.stack.lab("run", plan, *options)
        assert self.stack.lab.records(), result.stdout + result.stderr
        record = self.stack.lab.records()[-1]
        starved = record["valid"] and any(short_of_cpu(each, RATE) for each in record["steps"])
        assert result.returncode in {exit_code, 3 if starved else exit_code}, result.stderr
        assert "Traceback" not in result.stderr
        return Faulty(record, result, returned.result())

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
def make_rig(
    home: Path, images: Images, *, disks: bool = False, grafana: bool = True
) -> Iterator[Rig]:
    """One that is not up yet. `disks`: its stores lie on small ones. `grafana`: where there is an
    image of it."""
    with make_stack(home, images) as stack:
        rig = Rig(stack, [] if grafana and images.grafana else ["--without", "grafana"])
        _start_helper(rig, _make_disks(stack) if disks else [])
        try:
            yield rig
        finally:
            # At once: Prometheus alone would take up to 10 s to write what nobody reads.
            docker("rm", "--force", rig.helper, *stack.containers())


def _make_disks(stack: Stack) -> list[str]:
    """The stores' volumes as small disks, and the options that mount them all."""
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
    return mounts


def _start_helper(rig: Rig, mounts: Sequence[str]) -> None:
    """It keeps the disks while all others are dead: they are in memory."""
    image = rig.stack.compose("config", "--images", "target-network").stdout.split()[0]
    docker(
        *("run", "--detach", "--name", rig.helper, "--network", "none"),
        *("--pid", "host", "--cap-add", "KILL"),
        *(*mounts, image, *_IDLE),
    )


def docker(*arguments: str) -> str:
    """What `docker …` prints; it must end well."""
    result = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"docker {' '.join(arguments)}: {result.stderr}"
    return result.stdout
