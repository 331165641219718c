"""The two runtimes, docker and host: the same stack, started differently."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from spikelab.target_settings import Value

# In the order of start: stores before those that write to them.
COMPONENTS = ("influxdb", "prometheus", "redis", "target", "sockets", "proxy", "grafana")
# Started unless left out, and left out unless asked for.
OPTIONAL = ("grafana", "influxdb")
ON_DEMAND = ("redis", "proxy")


@dataclass(frozen=True)
class Endpoints:
    """Base URLs, each without a trailing slash; None for a component that is not there.

    `proxy` has one for each topology: sidecar, headers, tunnel, tunnel_sidecar, tls.
    """

    target: str
    management: str
    sockets: str
    prometheus: str
    influxdb: str | None
    grafana: str | None
    redis: str | None = None
    proxy: Mapping[str, str] | None = None


@dataclass(frozen=True)
class ComponentStatus:
    """A component's state in one word, and a line that explains it."""

    name: str
    state: str
    address: str
    detail: str = ""

    @property
    def running(self) -> bool:
        return self.state == "running"


@dataclass(frozen=True)
class DriverCommand:
    """How to start a driver process: its argument vector and environment.

    In a container: `pid_argv` prints the driver's process id, `remove_argv` removes it for certain.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    pid_argv: Sequence[str] = ()
    remove_argv: Sequence[str] = ()


class Runtime(Protocol):
    """What the rest of the lab asks of a runtime."""

    name: str

    def up(self, without: Sequence[str], on_demand: Sequence[str] = ()) -> None:
        """Starts what is not running and waits until all is healthy; on demand, these as well."""

    def require(self, on_demand: Sequence[str]) -> None:
        """Starts those of these that are not running, beside the running stack.

        The target is restarted to learn of a broker that it did not know of, with its settings.
        """

    def down(self) -> bool:
        """Stops everything; whether anything was running."""

    def status(self) -> list[ComponentStatus]:
        """Every component's state."""

    def endpoints(self) -> Endpoints:
        """Addresses as this machine sees them."""

    def driver_endpoints(self) -> Endpoints:
        """Addresses as the driver sees them."""

    def restart_target(self, settings: Mapping[str, Value]) -> None:
        """Restarts the lab's own target with these settings and waits until it is healthy."""

    def driver_path(self, name: str, testid: str) -> str:
        """A file of results/<testid> as the driver sees it."""

    def driver_script(self, driver: str, script: str) -> str:
        """One of k6/*.js or locust/*.py as the driver sees it."""

    def driver(
        self,
        driver: str,
        arguments: Sequence[str],
        env: Mapping[str, str],
        testid: str,
        dashboard_port: int | None = None,
    ) -> DriverCommand:
        """The command that runs k6 or Locust in this runtime; k6's web dashboard is on loopback."""

    def process_ids(self) -> dict[str, int]:
        """The running components' processes, as far as this machine can see them."""

    def target_build(self) -> tuple[str | None, str | None]:
        """(image, build) of the running target; one of the two is None."""

    def log_command(self, component: str, follow: bool) -> list[str]:
        """A command that prints a component's log."""
