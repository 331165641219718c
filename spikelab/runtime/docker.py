"""The docker runtime: Docker Compose with compose/docker-compose.yml, nothing else."""

import json
import os
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import psutil

from spikelab import paths
from spikelab.console import say, working
from spikelab.cores import Cores, chosen_cores
from spikelab.errors import UsageError
from spikelab.runtime import (
    COMPONENTS,
    ON_DEMAND,
    ComponentStatus,
    DriverCommand,
    Endpoints,
    RunningBuild,
    TargetBuild,
)
from spikelab.runtime.addresses import address, components_wanted, published, topologies
from spikelab.runtime.compose import (
    SERVICES,
    compose,
    compose_command,
    containers,
    process_id,
    succeeds,
)
from spikelab.runtime.container_start import (
    ContainerStart,
    container_start,
    cpu_variables,
    require_mountable,
    with_cpuset,
)
from spikelab.runtime.running_container import (
    changed_services,
    image_id,
    running_settings,
    target_label,
)
from spikelab.stack_settings import load_stack_settings
from spikelab.target_settings import Value

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
_RESULTS = "/results"
_PULL_PROBE_SECONDS = 30
_PULL_SECONDS = 600


class DockerRuntime:
    """See `Runtime`."""

    name = "docker"

    def __init__(self) -> None:
        self.settings = load_stack_settings()
        # Of the build that runs, for the drivers that follow.
        self._overrides: tuple[Path, ...] = ()

    @staticmethod
    def unusable() -> str | None:
        """Why docker can't be used here, in a clause; None when it can."""
        if shutil.which("docker") is None:
            return "there is no docker here"
        if succeeds("docker", "info") is False:
            return "no container engine answers"
        if not succeeds("docker", "compose", "version"):
            return "docker has no compose plugin"
        images = subprocess.run(
            compose_command("config", "--images", profiles=False),
            capture_output=True,
            text=True,
            check=False,
        ).stdout.split()
        missing = [image for image in images if not succeeds("docker", "image", "inspect", image)]
        pulled = [image for image in missing if not image.startswith("spikelab-")]
        if pulled and not succeeds(
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
            compose("--profile", "*", "down", "--remove-orphans")
        return running

    def status(self) -> list[ComponentStatus]:
        rows = containers()
        return [
            self._status(name, rows.get(SERVICES[name]))
            for name in COMPONENTS
            if name not in ON_DEMAND or SERVICES[name] in rows
        ]

    def endpoints(self) -> Endpoints:
        return published(self.settings, self._running())

    def driver_endpoints(self) -> Endpoints:
        ports = self.settings.defaults
        return replace(_INSIDE, proxy=topologies(lambda name: f"http://proxy:{ports[name]}"))

    def cpus(self) -> frozenset[int]:
        said = subprocess.run(
            ["docker", "info", "--format", "{{.NCPU}}"], capture_output=True, text=True, check=False
        ).stdout.strip()
        return frozenset(range(int(said) if said.isdigit() else 0))

    def require_build(self, build: TargetBuild) -> None:
        require_mountable(build)
        image = build.image
        if image and image_id(image) is None:
            with working(f"pulling {image}"):
                pulled = succeeds("docker", "pull", "--quiet", image, seconds=_PULL_SECONDS)
            if not pulled:
                raise UsageError(
                    f"image {image} is not here and cannot be pulled: build it, or load it with "
                    "docker load"
                )

    def restart_target(
        self,
        settings: Mapping[str, Value],
        build: TargetBuild | None = None,
        cores: Cores | None = None,
    ) -> None:
        start = _start_of(build, cores)
        before = target_label().get("services", [])
        start.write()
        # The services that override files brought along go with them.
        gone = ["--remove-orphans"] if {*before} - {*start.services} else []
        compose(
            "up",
            "--detach",
            "--wait",
            "--force-recreate",
            "--no-deps",
            *gone,
            "target",
            *changed_services({*before, *start.services}, start),
            files=start.files,
            env=_as_text(settings) | _broker(self._running()) | start.env,
        )
        self._overrides = build.compose if build else ()

    def target_started_with(self, build: TargetBuild | None, cores: Cores | None) -> bool:
        same = target_label() == _start_of(build, cores).label
        if same:
            self._overrides = build.compose if build else ()
        return same

    def driver_path(self, name: str, testid: str) -> str:
        return f"{_RESULTS}/{name}"

    def driver_script(self, driver: str, script: str) -> str:
        return f"{script}.py" if driver == "locust" else f"{script}.js"

    def process_ids(self) -> dict[str, int]:
        rows = containers()
        ids = {
            name: process_id(rows[service]["ID"])
            for name, service in SERVICES.items()
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
            compose_command(
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
                files=self._overrides,
            ),
            # The service's own K6_OUT gives way to the outputs on the command line.
            env,
            pid_argv=["docker", "inspect", "--format", "{{.State.Pid}}", name],
            remove_argv=["docker", "rm", "--force", name],
        )

    def driver_on(self, command: DriverCommand, cores: Cores) -> DriverCommand:
        return replace(
            command,
            argv=with_cpuset(command.argv),
            env={**command.env, **cpu_variables(cores)},
        )

    def target_build(self) -> RunningBuild:
        images = json.loads(compose("images", "--format", "json", "target") or "[]")
        label = target_label()
        return RunningBuild(
            image=f"{images[0]['Repository']}@{images[0]['ID']}" if images else None,
            build=label.get("jar"),
            compose=tuple(label.get("compose", ())),
        )

    def log_command(self, component: str, follow: bool) -> list[str]:
        return compose_command(
            "logs",
            "--tail",
            "100",
            *(["--follow"] if follow else []),
            SERVICES.get(component, component),
        )

    def _start(self, names: Sequence[str], option: str) -> None:
        services = [SERVICES[name] for name in names]
        running = self._running()
        cores = chosen_cores(self.settings.values, self.cpus(), separate=False)
        start = _start_of(None, cores)
        env = {**_broker({*names, *running}), **start.env}
        if "redis" in {*names} - running and "target" in running:
            say("restarting the target: it learns of the broker only at its start")
            env |= running_settings()
        start.write()
        with working("starting the containers"):
            compose("up", "--detach", "--wait", option, *services, files=start.files, env=env)

    def _running(self) -> set[str]:
        return {component.name for component in self.status() if component.running}

    def _status(self, name: str, row: Mapping[str, str] | None) -> ComponentStatus:
        where = address(self.settings, name)
        if row is None:
            return ComponentStatus(name, "stopped", where)
        return ComponentStatus(name, row["State"], where, row["Status"])


def _broker(components: Collection[str]) -> dict[str, str]:
    """What tells the target of the lab's own broker, for whatever may make its container anew."""
    return {"AUTHZ_REDIS_URL": str(_INSIDE.redis)} if "redis" in components else {}


def _as_text(settings: Mapping[str, Value]) -> dict[str, str]:
    return {name: str(value).lower() for name, value in settings.items()}


def _start_of(build: TargetBuild | None, cores: Cores | None) -> ContainerStart:
    return container_start(build, cores, image_id(build.image) if build and build.image else None)
