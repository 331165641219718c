"""The docker runtime: Docker Compose with compose/docker-compose.yml, nothing else. A driver runs
in a container of its own, inside the network of the stack."""

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from spikelab import paths
from spikelab.console import say, working
from spikelab.errors import LabError, UsageError
from spikelab.machine import Cores, chosen_cores
from spikelab.settings import (
    COMPONENTS,
    LOCUST_PROCESSES,
    ON_DEMAND,
    Endpoints,
    SettingValue,
    address,
    as_variables,
    components_wanted,
    load_stack_settings,
    published,
    start_command,
    topologies,
)
from spikelab.stack import engine
from spikelab.stack.base import (
    ComponentStatus,
    DriverCommand,
    require_free_ports,
)
from spikelab.stack.builds import RunningBuild, TargetBuild
from spikelab.stack.containers import CPUSET_FILE, Containers, TargetStart, cpu_variables
from spikelab.stack.engine import SERVICES, compose, compose_command
from spikelab.stack.environment import CERTIFICATES, TOKEN, TOKEN_FILE, named_file, tuning
from spikelab.stack.locks import changing_the_stack
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
# Where a driver finds the folder of its run.
_RESULTS = "/results"
_SCRIPTS = {"k6": "/home/k6", "locust": "/home/locust"}
_CERTIFICATES = "/run/own-authorities.pem"
# Where it works and is at home: in memory, so that no configuration of anybody's lies there.
_EMPTY = "/tmp"  # a file system of the container's own
_LIVE_FILE = paths.COMPOSE_FILE.with_name("docker-compose.live.yml")
_OWN_TARGET_FILE = paths.COMPOSE_FILE.with_name("docker-compose.own-target.yml")
# What a thread pool leaves to the JVM itself; also in compose/.env.example.
OTHER_THREADS = 200
THREADS = "TOMCAT_MAX_THREADS"
PROCESS_LIMIT = "TARGET_PROCESS_LIMIT"
_READABLE_BY_ALL = 0o004


class DockerRuntime:
    """See `Runtime`."""

    name = "docker"

    def __init__(self) -> None:
        self.settings = load_stack_settings()
        # Of the build that runs, for the drivers that follow.
        self._overrides: tuple[Path, ...] = ()

    def up(self, without: Sequence[str], on_demand: Sequence[str] = ()) -> None:
        wanted = components_wanted(without, on_demand)
        with changing_the_stack():
            containers = Containers.listed()
            # What was started on demand and runs comes along: a changed file may change it as well.
            running = containers.components()
            also = sorted(running.intersection(ON_DEMAND).difference(wanted))
            left_out = [name for name in without if name not in running]
            if left_out:
                # One that has stopped would count as one that has died. Its data stay.
                compose("rm", "--force", *left_out)
            # Grafana needs InfluxDB, which would come along.
            none = "influxdb" in left_out and "grafana" in wanted
            options = ("--build", *(("--scale", "influxdb=0") if none else ()))
            self._start([*wanted, *also], containers, *options)

    def require(self, on_demand: Sequence[str]) -> None:
        with changing_the_stack():
            containers = Containers.listed()
            missing = [name for name in on_demand if name not in containers.components()]
            if "redis" in missing:
                missing.append("target")
            if missing:
                # What they depend on runs, and is not to be made anew under the running target.
                self._start(missing, containers, "--no-deps")

    def down(self) -> bool:
        running = bool(Containers.listed().components())
        with changing_the_stack(), working("stopping the containers"):
            compose("--profile", "*", "down", "--remove-orphans")
            # Of override files: the way out to a service of the user's own.
            engine.remove_networks()
        return running

    def status(self) -> list[ComponentStatus]:
        rows = Containers.listed().rows
        found = []
        for name in COMPONENTS:
            row, where = rows.get(SERVICES[name]), address(self.settings, name)
            if row:
                found.append(ComponentStatus(name, row["State"], where, row["Status"]))
            elif name not in ON_DEMAND:
                found.append(ComponentStatus(name, "stopped", where))
        return found

    def endpoints(self) -> Endpoints:
        containers = Containers.listed()
        here = published(self.settings, containers.components())
        return replace(here, replicas=containers.replica_urls())

    def driver_endpoints(self) -> Endpoints:
        ports = self.settings.defaults
        return replace(_INSIDE, proxy=topologies(lambda name: f"http://proxy:{ports[name]}"))

    def cpus(self) -> frozenset[int]:
        found = engine.find_engine()
        return frozenset(range(found.cpus if found else 0))

    def limits(self) -> dict[str, int | str | None]:
        values = self.settings.values
        return {
            "open_files": parse_whole_number(values["OPEN_FILES"]),
            "somaxconn": parse_whole_number(values["SOMAXCONN"]),
            "port_range": values["LOCAL_PORT_RANGE"],
        }

    def require_build(self, build: TargetBuild) -> None:
        if build.jar and not build.jar.stat().st_mode & _READABLE_BY_ALL:
            jar = paths.shown(build.jar)
            raise UsageError(f"jar {jar}: the container's user may not read it: chmod o+r {jar}")
        if build.image:
            engine.require_image(build.image)

    def restart_target(
        self,
        settings: Mapping[str, SettingValue],
        build: TargetBuild | None = None,
        cores: Cores | None = None,
    ) -> None:
        require_threads(self.settings.values, settings)
        start = TargetStart.of(build, cores)
        with changing_the_stack():
            containers = Containers.listed()
            before = containers.target_label().get("services", [])
            start.write()
            others = containers.strays({*before, *start.services})
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
                *containers.changed_with_target({*before, *start.services}, start),
                files=start.files,
                env=as_variables(settings) | _broker(containers.components()) | start.env,
            )
            if hidden := Containers.listed().unseen():
                raise LabError(f"the engine does not say where {', '.join(hidden)} can be reached")
        self._overrides = build.compose if build else ()

    def target_started_with(self, build: TargetBuild | None, cores: Cores | None) -> bool:
        same = Containers.listed().target_started_so(TargetStart.of(build, cores))
        if same:
            self._overrides = build.compose if build else ()
        return same

    def target_build(self) -> RunningBuild:
        images = json.loads(compose("images", "--format", "json", "target") or "[]")
        label = Containers.listed().target_label()
        return RunningBuild(
            image=f"{images[0]['Repository']}@{images[0]['ID']}" if images else None,
            build=label.get("jar"),
            compose=tuple(label.get("compose", ())),
        )

    def process_ids(self) -> dict[str, int]:
        return Containers.listed().process_ids()

    def log_command(self, component: str, follow: bool) -> list[str]:
        service = SERVICES[component]
        if service not in Containers.listed().rows:
            raise LabError(f"{component} has no log yet: {start_command(component)} starts it")
        return compose_command("logs", "--tail", "100", *(["--follow"] if follow else []), service)

    def driver_path(self, name: str, testid: str) -> str:
        return f"{_RESULTS}/{name}"

    def driver_script(self, driver: str, script: str) -> str:
        return f"{_SCRIPTS[driver]}/{script}.{'py' if driver == 'locust' else 'js'}"

    def driver(
        self,
        driver: str,
        arguments: Sequence[str],
        env: Mapping[str, str],
        testid: str,
        dashboard_port: int | None = None,
        cores: Cores | None = None,
    ) -> DriverCommand:
        name = f"spikelab-{driver}-{testid.lower()}"
        # 0: one process does it all.
        alone = {LOCUST_PROCESSES: "0"} if driver == "locust" else {}
        env = {**alone, **tuning(), **env}
        # As the user who runs the lab.
        options = ["--user", f"{os.getuid()}:{os.getgid()}", "--workdir", _EMPTY]
        options += ["--env", f"HOME={_EMPTY}"]
        options += ["--volume", f"{paths.RESULTS / testid}:{_RESULTS}"]
        if certificates := named_file(CERTIFICATES):
            options += ["--volume", f"{certificates}:{_CERTIFICATES}:ro"]
            options += ["--env", f"{CERTIFICATES}={_CERTIFICATES}"]
        files = [CPUSET_FILE] if cores else []
        if self.settings.values.get("OWN_TARGET_ADDRESS"):
            files.append(_OWN_TARGET_FILE)
        if dashboard_port:
            env["K6_WEB_DASHBOARD_HOST"] = "0.0.0.0"
            options += ["--publish", f"127.0.0.1:{dashboard_port}:{dashboard_port}"]
            files.append(_LIVE_FILE)
        token = _mountable_token()
        named = token.get(TOKEN_FILE)
        if named and not Path(named).exists():
            # Nothing to mount. A script that needs it says so, with its name; others do not care.
            token = {TOKEN_FILE: ""}
            options += ["--env", f"{TOKEN_FILE}={named}"]
        options += [word for key in env for word in ("--env", key)]
        run = ("run", "--rm", "--no-TTY", "--no-deps", "--name", name, *options)
        # The target's build may change the driver as well.
        files += self._overrides
        return DriverCommand(
            # The service's own K6_OUT gives way to the outputs on the command line.
            compose_command("--profile", driver, *run, driver, *arguments, files=files),
            # Compose reads the user's, and hands on to the container what `--env` names.
            {
                **{name: value for name, value in os.environ.items() if name != TOKEN},
                **env,
                **token,
                **cpu_variables(cores),
            },
            pid_argv=["docker", "inspect", "--format", "{{.State.Pid}}", name],
            remove_argv=["docker", "rm", "--force", name],
        )

    def _start(self, names: Sequence[str], containers: Containers, *options: str) -> None:
        """Under the lock of whoever calls it: what it was given must still be so."""
        own = containers.published_ports()
        for name in names:
            require_free_ports(self.settings, name, own)
        running = containers.components()
        start = TargetStart.of(
            None, chosen_cores(self.settings.values, self.cpus(), separate=False)
        )
        env = {**_broker({*names, *running}), **start.env}
        if "redis" in {*names} - running and "target" in running:
            say("restarting the target: it learns of the broker only at its start")
            env |= containers.target_settings()
        start.write()
        # What a variant's override files have started goes with its build.
        brought = "target" in names and containers.target_label().get("services")
        gone = ["--remove-orphans"] if brought else []
        services = [SERVICES[name] for name in names]
        with working("starting the containers"):
            compose(
                *("up", "--detach", *_WAIT, *options, *gone, *services),
                files=start.files,
                env=env,
            )


def require_threads(values: Mapping[str, str], settings: Mapping[str, object]) -> None:
    """Raises UsageError where the target's container may not have the threads of these settings: it
    would die of the first that it cannot have."""
    if THREADS not in settings:
        return
    limit = whole_limit(values, PROCESS_LIMIT)
    threads = whole_limit(settings, THREADS)
    if threads + OTHER_THREADS > limit:
        raise UsageError(
            f"{THREADS}={threads} needs {PROCESS_LIMIT}={threads + OTHER_THREADS}, which is "
            f"{limit} (compose/.env)"
        )


def whole_limit(values: Mapping[str, object], name: str) -> int:
    """A limit from 1 on by its variable's name. Raises UsageError."""
    number = parse_whole_number(str(values[name]))
    if number is None or number < 1:
        raise UsageError(f"{name}={values[name]}: must be a whole number from 1 on (compose/.env)")
    return number


def _broker(components: Collection[str]) -> dict[str, str]:
    """What tells the target of the lab's own broker, for whatever may make its container anew."""
    return {"AUTHZ_REDIS_URL": str(_INSIDE.redis)} if "redis" in components else {}


def _mountable_token() -> dict[str, str]:
    """The variable that names the user's token, of TOKEN or TOKEN_FILE: what a container has in its
    environment, whoever may speak to the engine can read. The file of TOKEN is its owner's, who is
    the driver's user too."""
    file = paths.STATE / "token"
    file.unlink(missing_ok=True)
    if token := os.environ.get(TOKEN):
        file.touch(mode=0o600)
        file.write_text(token)
        return {TOKEN_FILE: str(file)}
    named = named_file(TOKEN_FILE)
    return {TOKEN_FILE: str(named)} if named else {}
