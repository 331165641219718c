"""What every runtime is: the same stack, started differently; and what runtimes share: free
ports."""

import errno
import re
import socket
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from spikelab.errors import LabError, UsageError
from spikelab.machine import Cores, port_holder
from spikelab.settings import PORTS, Endpoints, SettingValue, StackSettings, bind_address
from spikelab.stack.builds import RunningBuild, TargetBuild

# The services of further targets, where a runtime starts several.
REPLICA = re.compile(r"target-\d+")


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
    """How to start a driver process: its argument vector, and its whole environment.

    `folder`: where it works (None: where the lab does). `cpus`: those that it may run on; none:
    all. In a container, which has them by itself: `pid_argv` prints the driver's process id,
    `remove_argv` removes it for certain.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    pid_argv: Sequence[str] = ()
    remove_argv: Sequence[str] = ()
    cpus: Sequence[int] = ()
    folder: Path | None = None


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

    def cpus(self) -> frozenset[int]:
        """The CPUs that driver and target can be bound to; empty where they cannot."""

    def limits(self) -> Mapping[str, int | str | None]:
        """Those of driver and target that are not this machine's, as the record names them."""

    def require_build(self, build: TargetBuild) -> None:
        """Raises UsageError when this runtime cannot start the target so."""

    def restart_target(
        self,
        settings: Mapping[str, SettingValue],
        build: TargetBuild | None = None,
        cores: Cores | None = None,
    ) -> None:
        """Restarts the target and waits until it is healthy: with all of these settings, the lab's
        own build or another, on its CPUs or on all."""

    def target_started_with(self, build: TargetBuild | None, cores: Cores | None) -> bool:
        """Whether the running target was started so, from files that are still the same."""

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
        cores: Cores | None = None,
    ) -> DriverCommand:
        """The command that runs k6 or Locust in this runtime, on its CPUs or on all; k6's web
        dashboard is on loopback."""

    def process_ids(self) -> dict[str, int]:
        """The running components' processes, as far as this machine can see them."""

    def target_build(self) -> RunningBuild:
        """What the running target was made from."""

    def log_command(self, component: str, follow: bool) -> list[str]:
        """A command that prints a component's log."""


def require_free_ports(
    settings: StackSettings, component: str, own: Container[int] = frozenset()
) -> None:
    """Raises LabError naming the port, its holder and the cure, if one of the component's ports is
    taken; those in `own` may be. Raises UsageError where its address cannot be listened on."""
    address = bind_address(settings, component)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for variable in PORTS[component]:
        port = settings.port(variable)
        if port in own:
            continue
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise UsageError(
                        f"LAB_BIND={address}: {component} cannot listen there ({error.strerror})"
                    ) from error
                raise LabError(
                    f"port {port} for {component} is taken{port_holder(port)}: stop that, or set "
                    f"{variable} in compose/.env"
                ) from error
