"""The docker runtime: Docker Compose with compose/docker-compose.yml, nothing else."""

import json
import os
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import psutil

from spikelab import paths
from spikelab.console import say, working
from spikelab.errors import LabError
from spikelab.runtime import (
    COMPONENTS,
    ON_DEMAND,
    ComponentStatus,
    DriverCommand,
    Endpoints,
)
from spikelab.runtime.addresses import address, components_wanted, published, topologies
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
    redis="redis://redis:6379",
)
_ALWAYS = ("docker", "compose", "-f", str(paths.COMPOSE_FILE))
# With their profiles, what is started on demand is seen whether it was asked for or not.
_COMPOSE = (*_ALWAYS, *(word for name in ON_DEMAND for word in ("--profile", name)))
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
            [*_ALWAYS, "config", "--images"], capture_output=True, text=True, check=False
        ).stdout.split()
        missing = [image for image in images if not _succeeds("docker", "image", "inspect", image)]
        pulled = [image for image in missing if not image.startswith("spikelab-")]
        if pulled and not _succeeds(
            "docker", "pull", "--quiet", pulled[0], seconds=_PULL_PROBE_SECONDS
        ):
            return f"the image {pulled[0]} is not here and cannot be pulled"
        return None

    def up(self, without: Sequence[str], on_demand: Sequence[str] = ()) -> None:
        self._start(components_wanted(without, on_demand), "--build")

    def require(self, on_demand: Sequence[str]) -> None:
        running = self._running()
        missing = [name for name in on_demand if name not in running]
        if "redis" in missing:
            missing.append("target")
        if missing:
            # What they depend on runs, and is not to be made anew under the running target.
            self._start(missing, "--no-deps")

    def down(self) -> bool:
        running = any(component.running for component in self.status())
        with working("stopping the containers"):
            self._compose("--profile", "*", "down", "--remove-orphans")
        return running

    def status(self) -> list[ComponentStatus]:
        rows = self._rows()
        return [
            self._status(name, rows.get(_SERVICES[name]))
            for name in COMPONENTS
            if name not in ON_DEMAND or _SERVICES[name] in rows
        ]

    def endpoints(self) -> Endpoints:
        return published(self.settings, self._running())

    def driver_endpoints(self) -> Endpoints:
        ports = self.settings.defaults
        return replace(_INSIDE, proxy=topologies(lambda name: f"http://proxy:{ports[name]}"))

    def restart_target(self, settings: Mapping[str, Value]) -> None:
        values = {name: str(value).lower() for name, value in settings.items()}
        self._compose(
            "up",
            "--detach",
            "--wait",
            "--force-recreate",
            "--no-deps",
            "target",
            env=values | _broker(self._running()),
        )

    def driver_path(self, name: str, testid: str) -> str:
        return f"{_RESULTS}/{name}"

    def driver_script(self, driver: str, script: str) -> str:
        return f"{script}.py" if driver == "locust" else f"{script}.js"

    def process_ids(self) -> dict[str, int]:
        rows = self._rows()
        ids = {
            name: _process_id(rows[service]["ID"])
            for name, service in _SERVICES.items()
            if service in rows
        }
        return {name: pid for name, pid in ids.items() if pid and psutil.pid_exists(pid)}

    def driver(
        self,
        driver: str,
        arguments: Sequence[str],
        env: Mapping[str, str],
        testid: str,
        dashboard_port: int | None = None,
    ) -> DriverCommand:
        name = f"spikelab-{driver}-{testid.lower()}"
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
                driver,
                "run",
                "--rm",
                "--no-TTY",
                "--no-deps",
                "--name",
                name,
                *options,
                driver,
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

    def _start(self, names: Sequence[str], option: str) -> None:
        services = [_SERVICES[name] for name in names]
        running = self._running()
        if "redis" in {*names} - running and "target" in running:
            say("restarting the target: it learns of the broker only at its start")
        broker = _broker({*names, *running})
        with working("starting the containers"):
            self._compose("up", "--detach", "--wait", option, *services, env=broker)

    def _running(self) -> set[str]:
        return {component.name for component in self.status() if component.running}

    def _rows(self) -> dict[str, dict[str, str]]:
        said = self._compose("ps", "--all", "--format", "json")
        return {row["Service"]: row for row in map(json.loads, said.splitlines()) if row}

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


def _broker(components: Collection[str]) -> dict[str, str]:
    """What tells the target of the lab's own broker, for whatever may make its container anew."""
    return {"AUTHZ_REDIS_URL": str(_INSIDE.redis)} if "redis" in components else {}


def _process_id(container: str) -> int:
    """The container's first process on this machine; 0 where it has none or it can't be told."""
    said = subprocess.run(
        ["docker", "inspect", "--format", "{{.State.Pid}}", container],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return int(said) if said.isdigit() else 0


def _succeeds(*command: str, seconds: float = _ANSWER_SECONDS) -> bool:
    try:
        return (
            subprocess.run(command, capture_output=True, timeout=seconds, check=False).returncode
            == 0
        )
    except subprocess.TimeoutExpired:
        return False
