"""The docker runtime: Docker Compose with compose/docker-compose.yml, nothing else."""

# - A driver in a container of its own, inside the network of the stack.
import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from spikelab import paths
from spikelab.console import say, working
from spikelab.errors import LabError
from spikelab.machine import Cores, chosen_cores
from spikelab.settings import (
    COMPONENTS,
    LOCUST_PROCESSES,
    ON_DEMAND,
    PORTS,
    Endpoints,
    SettingValue,
    address,
    as_variables,
    bind_address,
    components_wanted,
    load_stack_settings,
    published,
    start_command,
    topologies,
)
from spikelab.stack import engine
from spikelab.stack.base import ComponentStatus, DriverCommand, RunningBuild, TargetBuild
from spikelab.stack.engine import (
    REPLICA,
    SERVICES,
    ContainerStart,
    changed_services,
    compose,
    compose_command,
    container_start,
    containers,
    cpu_variables,
    image_id,
    process_id,
    published_ports,
    remove_networks,
    replicas,
    require_mountable,
    running_replicas,
    running_settings,
    strays,
    target_label,
    unseen,
    with_cpuset,
)
from spikelab.stack.host import require_free
from spikelab.stack.limits import require_threads
from spikelab.stack.locks import changing_the_stack, token_file
from spikelab.units import parse_whole_number

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
# A container that dies again and again would be waited for without end. A machine at work on other
# things takes a minute and a half.
_WAIT = ("--wait", "--wait-timeout", "180")


class DockerRuntime:
    """See `Runtime`."""

    name = "docker"

    def __init__(self) -> None:
        self.settings = load_stack_settings()
        # Of the build that runs, for the drivers that follow.
        self._overrides: tuple[Path, ...] = ()

    unusable = staticmethod(engine.unusable)

    def up(self, without: Sequence[str], on_demand: Sequence[str] = ()) -> None:
        wanted = components_wanted(without, on_demand)
        with changing_the_stack():
            # What was started on demand and runs comes along: a changed file may change it as well.
            running = self._running()
            also = sorted(running.intersection(ON_DEMAND).difference(wanted))
            left_out = [name for name in without if name not in running]
            if left_out:
                # One that has stopped would count as one that has died. Its data stay.
                compose("rm", "--force", *left_out)
            # Grafana needs InfluxDB, which would come along.
            none = "influxdb" in left_out and "grafana" in wanted
            self._start([*wanted, *also], "--build", *(["--scale", "influxdb=0"] if none else []))

    def require(self, on_demand: Sequence[str]) -> None:
        with changing_the_stack():
            running = self._running()
            missing = [name for name in on_demand if name not in running]
            if "redis" in missing:
                missing.append("target")
            if missing:
                # What they depend on runs, and is not to be made anew under the running target.
                self._start(missing, "--no-deps")

    def down(self) -> bool:
        running = any(component.running for component in self.status())
        with changing_the_stack(), working("stopping the containers"):
            compose("--profile", "*", "down", "--remove-orphans")
            # Of override files: the way out to a service of the user's own.
            remove_networks()
        return running

    def status(self) -> list[ComponentStatus]:
        rows = containers()
        return [
            self._status(name, rows.get(SERVICES[name]))
            for name in COMPONENTS
            if name not in ON_DEMAND or SERVICES[name] in rows
        ]

    def endpoints(self) -> Endpoints:
        return replace(published(self.settings, self._running()), replicas=replicas(containers()))

    def driver_endpoints(self) -> Endpoints:
        ports = self.settings.defaults
        return replace(_INSIDE, proxy=topologies(lambda name: f"http://proxy:{ports[name]}"))

    def cpus(self) -> frozenset[int]:
        return engine.cpus()

    def limits(self) -> dict[str, int | str | None]:
        values = self.settings.values
        return {
            "open_files": parse_whole_number(values["OPEN_FILES"]),
            "somaxconn": parse_whole_number(values["SOMAXCONN"]),
            "port_range": values["LOCAL_PORT_RANGE"],
        }

    def require_build(self, build: TargetBuild) -> None:
        require_mountable(build)
        if build.image:
            engine.require_image(build.image)

    def restart_target(
        self,
        settings: Mapping[str, SettingValue],
        build: TargetBuild | None = None,
        cores: Cores | None = None,
    ) -> None:
        require_threads(self.settings.values, settings)
        start = _start_of(build, cores)
        with changing_the_stack():
            before = target_label().get("services", [])
            start.write()
            others = strays(containers(), {*before, *start.services})
            if others:
                say(f"taking away what was not started for this: {', '.join(others)}")
            # The services that override files brought along go with them.
            gone = ["--remove-orphans"] if {*before, *others} - {*start.services} else []
            compose(
                "up",
                "--detach",
                *_WAIT,
                "--force-recreate",
                "--no-deps",
                *gone,
                "target",
                *changed_services({*before, *start.services}, start),
                files=start.files,
                env=as_variables(settings) | _broker(self._running()) | start.env,
            )
            if hidden := unseen(containers()):
                raise LabError(f"the engine does not say where {', '.join(hidden)} can be reached")
        self._overrides = build.compose if build else ()

    def target_started_with(self, build: TargetBuild | None, cores: Cores | None) -> bool:
        start, rows = _start_of(build, cores), containers()
        targets = ["target", *running_replicas(rows)]
        same = (
            not strays(rows, start.services)
            and not unseen(rows)
            and all(target_label(name) == start.label for name in targets)
        )
        if same:
            self._overrides = build.compose if build else ()
        return same

    def driver_path(self, name: str, testid: str) -> str:
        return f"{RESULTS}/{name}"

    def driver_script(self, driver: str, script: str) -> str:
        return f"{script}.py" if driver == "locust" else f"{script}.js"

    def process_ids(self) -> dict[str, int]:
        rows = containers()
        services = SERVICES | {name: name for name in rows if REPLICA.fullmatch(name)}
        ids = {
            name: process_id(rows[service]["ID"])
            for name, service in services.items()
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
        return driver_container(
            driver, arguments, env, testid, overrides=self._overrides, dashboard_port=dashboard_port
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
        if SERVICES[component] not in containers():
            raise LabError(f"{component} has no log yet: {start_command(component)} starts it")
        return compose_command(
            "logs",
            "--tail",
            "100",
            *(["--follow"] if follow else []),
            SERVICES[component],
        )

    def _start(self, names: Sequence[str], *options: str) -> None:
        """Under the lock of whoever calls it: what it sees must still be so when it starts."""
        services = [SERVICES[name] for name in names]
        self._require_free_ports(names)
        running = self._running()
        cores = chosen_cores(self.settings.values, self.cpus(), separate=False)
        start = _start_of(None, cores)
        env = {**_broker({*names, *running}), **start.env}
        if "redis" in {*names} - running and "target" in running:
            say("restarting the target: it learns of the broker only at its start")
            env |= running_settings()
        start.write()
        # What a variant's override files have started goes with its build.
        brought = "target" in names and target_label().get("services")
        gone = ["--remove-orphans"] if brought else []
        up = ("up", "--detach", *_WAIT, *options, *gone, *services)
        with working("starting the containers"):
            compose(*up, files=start.files, env=env)

    def _require_free_ports(self, names: Sequence[str]) -> None:
        """Of these, what the stack does not publish already can be."""
        own = published_ports(containers())
        for name in names:
            for variable in PORTS[name]:
                port = self.settings.port(variable)
                if port not in own:
                    require_free(bind_address(self.settings, name), port, name, variable)

    def _running(self) -> set[str]:
        return {component.name for component in self.status() if component.running}

    def _status(self, name: str, row: Mapping[str, Any] | None) -> ComponentStatus:
        where = address(self.settings, name)
        if row is None:
            return ComponentStatus(name, "stopped", where)
        return ComponentStatus(name, row["State"], where, row["Status"])


def _broker(components: Collection[str]) -> dict[str, str]:
    """What tells the target of the lab's own broker, for whatever may make its container anew."""
    return {"AUTHZ_REDIS_URL": str(_INSIDE.redis)} if "redis" in components else {}


def _start_of(build: TargetBuild | None, cores: Cores | None) -> ContainerStart:
    return container_start(build, cores, image_id(build.image) if build and build.image else None)


# Where it finds the folder of its run.
RESULTS = "/results"
_LIVE_FILE = paths.COMPOSE_FILE.with_name("docker-compose.live.yml")
_OWN_TARGET_FILE = paths.COMPOSE_FILE.with_name("docker-compose.own-target.yml")


def driver_container(
    driver: str,
    arguments: Sequence[str],
    env: Mapping[str, str],
    testid: str,
    *,
    overrides: Sequence[Path],
    dashboard_port: int | None,
) -> DriverCommand:
    """The command that runs k6 or Locust, as the user who runs the lab. `overrides`: Compose files
    of the target's build, which may change the driver as well."""
    name = f"spikelab-{driver}-{testid.lower()}"
    env = dict(env)
    options = [
        "--user",
        f"{os.getuid()}:{os.getgid()}",
        "--volume",
        f"{paths.RESULTS / testid}:{RESULTS}",
    ]
    if dashboard_port:
        env["K6_WEB_DASHBOARD_HOST"] = "0.0.0.0"
        options += ["--publish", f"127.0.0.1:{dashboard_port}:{dashboard_port}"]
    if driver == "locust":
        # As on the host, where the user's own environment decides; 0: one process does it all.
        env[LOCUST_PROCESSES] = os.environ.get(LOCUST_PROCESSES, "0")
    token = token_file()
    named = token.get("TOKEN_FILE")
    if named and not Path(named).exists():
        # Nothing to mount. A script that needs it says so, with its name; the others do not care.
        token = {"TOKEN_FILE": ""}
        options += ["--env", f"TOKEN_FILE={named}"]
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
            files=(*_networks(live=bool(dashboard_port)), *overrides),
        ),
        # The service's own K6_OUT gives way to the outputs on the command line.
        {**env, **token},
        pid_argv=["docker", "inspect", "--format", "{{.State.Pid}}", name],
        remove_argv=["docker", "rm", "--force", name],
    )


def _networks(*, live: bool) -> list[Path]:
    """The files that give a driver more networks: where it has a page, and where its target is not
    one of the lab's."""
    own = load_stack_settings().values.get("OWN_TARGET_ADDRESS")
    return [*([_OWN_TARGET_FILE] if own else []), *([_LIVE_FILE] if live else [])]
