"""The docker runtime: Docker Compose with compose/docker-compose.yml, nothing else."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from spikelab import paths
from spikelab.console import working
from spikelab.errors import LabError
from spikelab.runtime import COMPONENTS, ComponentStatus, DriverCommand, Endpoints
from spikelab.runtime.addresses import address, components_without, published
from spikelab.stack_settings import load_stack_settings
from spikelab.target_settings import Value

_SERVICES = {name: name for name in COMPONENTS} | {"sockets": "sockets-exporter"}
# Inside the compose network every service listens on its standard port.
_INSIDE = Endpoints(
    target="http://target:8080",
    management="http://target:8081",
    sockets="http://target:9100",
    prometheus="http://prometheus:9090",
    influxdb="http://influxdb:8086",
    grafana="http://grafana:3000",
)
_COMPOSE = ("docker", "compose", "-f", str(paths.COMPOSE_FILE))
_RESULTS = "/results"
_ANSWER_SECONDS = 10
_PULL_PROBE_SECONDS = 30


class DockerRuntime:
    """See `Runtime`."""

    name = "docker"

    def __init__(self) -> None:
        self.settings = load_stack_settings()

    @staticmethod
    def unusable() -> str | None:
        """Why docker can't be used here, in a clause; None when it can."""
        if shutil.which("docker") is None:
            return "there is no docker here"
        if _succeeds("docker", "info") is False:
            return "no container engine answers"
        if not _succeeds("docker", "compose", "version"):
            return "docker has no compose plugin"
        images = subprocess.run(
            [*_COMPOSE, "config", "--images"], capture_output=True, text=True, check=False
        ).stdout.split()
        missing = [image for image in images if not _succeeds("docker", "image", "inspect", image)]
        pulled = [image for image in missing if not image.startswith("spikelab-")]
        if pulled and not _succeeds(
            "docker", "pull", "--quiet", pulled[0], seconds=_PULL_PROBE_SECONDS
        ):
            return f"the image {pulled[0]} is not here and cannot be pulled"
        return None

    def up(self, without: Sequence[str]) -> None:
        services = [_SERVICES[name] for name in components_without(without)]
        with working("starting the containers"):
            self._compose("up", "--detach", "--wait", "--build", *services)

    def down(self) -> bool:
        running = any(component.running for component in self.status())
        with working("stopping the containers"):
            self._compose("--profile", "*", "down", "--remove-orphans")
        return running

    def status(self) -> list[ComponentStatus]:
        said = self._compose("ps", "--all", "--format", "json")
        rows = {row["Service"]: row for row in map(json.loads, said.splitlines()) if row}
        return [self._status(name, rows.get(_SERVICES[name])) for name in COMPONENTS]

    def endpoints(self) -> Endpoints:
        running = {component.name for component in self.status() if component.running}
        return published(self.settings, running)

    def driver_endpoints(self) -> Endpoints:
        return _INSIDE

    def restart_target(self, settings: Mapping[str, Value]) -> None:
        values = {name: str(value).lower() for name, value in settings.items()}
        self._compose(
            "up", "--detach", "--wait", "--force-recreate", "--no-deps", "target", env=values
        )

    def driver_path(self, name: str, testid: str) -> str:
        return f"{_RESULTS}/{name}"

    def k6_script(self, script: str) -> str:
        return f"{script}.js"

    def k6(
        self,
        arguments: Sequence[str],
        env: Mapping[str, str],
        testid: str,
        dashboard_port: int | None,
    ) -> DriverCommand:
        name = f"spikelab-k6-{testid.lower()}"
        env = dict(env)
        options = [
            "--user",
            f"{os.getuid()}:{os.getgid()}",
            "--volume",
            f"{paths.RESULTS / testid}:{_RESULTS}",
        ]
        if dashboard_port:
            env["K6_WEB_DASHBOARD_HOST"] = "0.0.0.0"
            options += ["--publish", f"127.0.0.1:{dashboard_port}:{dashboard_port}"]
        options += [word for key in env for word in ("--env", key)]
        return DriverCommand(
            [
                *_COMPOSE,
                "--profile",
                "k6",
                "run",
                "--rm",
                "--no-TTY",
                "--no-deps",
                "--name",
                name,
                *options,
                "k6",
                *arguments,
            ],
            # The service's own K6_OUT gives way to the outputs on the command line.
            env,
            pid_argv=["docker", "inspect", "--format", "{{.State.Pid}}", name],
            remove_argv=["docker", "rm", "--force", name],
        )

    def target_build(self) -> tuple[str | None, str | None]:
        said = self._compose("images", "--format", "json", "target")
        images = json.loads(said or "[]")
        return (f"{images[0]['Repository']}@{images[0]['ID']}" if images else None), None

    def log_command(self, component: str, follow: bool) -> list[str]:
        return [
            *_COMPOSE,
            "logs",
            "--tail",
            "100",
            *(["--follow"] if follow else []),
            _SERVICES.get(component, component),
        ]

    def _status(self, name: str, row: Mapping[str, str] | None) -> ComponentStatus:
        where = address(self.settings, name)
        if row is None:
            return ComponentStatus(name, "stopped", where)
        return ComponentStatus(name, row["State"], where, row["Status"])

    def _compose(self, *arguments: str, env: Mapping[str, str] | None = None) -> str:
        result = subprocess.run(
            [*_COMPOSE, *arguments],
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


def _succeeds(*command: str, seconds: float = _ANSWER_SECONDS) -> bool:
    try:
        return (
            subprocess.run(command, capture_output=True, timeout=seconds, check=False).returncode
            == 0
        )
    except subprocess.TimeoutExpired:
        return False
