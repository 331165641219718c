"""The host runtime: the stack as plain processes under supervisord, all of it below .lab/.

What its programs read is written here too: Prometheus' folder, the secrets of this installation,
the target's variables.
"""

import json
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import yaml

from spikelab import paths
from spikelab.console import say, working
from spikelab.errors import LabError, UsageError
from spikelab.health import wait_healthy
from spikelab.machine import DRIVER_CPUS, TARGET_CPUS, Cores, chosen_cores, cpu_list, usable_cpus
from spikelab.settings import (
    COMPONENTS,
    ON_DEMAND,
    PORTS,
    Endpoints,
    SettingValue,
    StackSettings,
    address,
    as_variables,
    components_wanted,
    load_stack_settings,
    load_target_declaration,
    published,
    start_command,
)
from spikelab.stack.base import (
    ComponentStatus,
    DriverCommand,
    require_free_ports,
)
from spikelab.stack.builds import RunningBuild, TargetBuild, file_hash, missing_libraries
from spikelab.stack.environment import of_this_machine
from spikelab.stack.locks import changing_the_stack
from spikelab.stack.programs import (
    GRAFANA_ADVICE,
    ensure_built,
    find_grafana,
    locust_program,
    require_program,
    target_jar,
    target_stamp,
)
from spikelab.stack.supervisor import Supervisor, orphans, stop
from spikelab.stores import InfluxDB

_HEALTH_PATHS = {
    "influxdb": "/ping",
    "prometheus": "/-/healthy",
    "target": "/actuator/health",
    "sockets": "/healthz",
    "proxy": "/healthz",
    "grafana": "/api/health",
}
_HEALTHY_SECONDS = 60
_SETTINGS = paths.STATE / "settings.json"
_DATA = paths.LAB / "data"
_SECRETS = _DATA / "secrets"
# A folder that holds the certificate authority alone, as SSL_CERT_DIR wants it.
_CA_FOLDER = _SECRETS / "ca"
_PROMETHEUS = paths.STATE / "prometheus"
_SHARED_PROMETHEUS = paths.ROOT / "prometheus"
_TARGET_ENV = paths.STATE / "target.env"
# Where drivers work and are at home: empty, so that Locust finds no locust.conf of the user's, and
# k6 no config.json.
_DRIVER_HOME = paths.STATE / "driver"
_BROKER = "AUTHZ_REDIS_URL"
# In the target's variables: the hash of what it was started from.
_BUILD = "TARGET_BUILD"


class HostRuntime:
    """See `Runtime`."""

    name = "host"

    def __init__(self) -> None:
        self.supervisor = Supervisor()
        self.asked = load_stack_settings()
        # What runs keeps the addresses that it was started with, whatever is asked for now.
        self.settings = self._started_with() or self.asked

    def up(self, without: Sequence[str], on_demand: Sequence[str] = ()) -> None:
        wanted = self._wanted(without, on_demand)
        declaration = load_target_declaration()
        own = declaration.given(self.asked.values)
        settings = declaration.resolve(own)
        cores = chosen_cores(self.asked.values, self.cpus(), separate=False)
        _require_binding(cores)
        ensure_built()
        with changing_the_stack():
            self._refuse_other_settings()
            if not self.supervisor.running() and (left := orphans()):
                say("stopping what a supervisord that died has left")
                stop(left)
            running = self._running()
            missing = self._require_startable(wanted, running)
            if not self.supervisor.running():
                self._prepare()
                self.supervisor.start(self._environment())
            if "target" in missing:
                broker = "redis" in {*running, *missing}
                self._write_target_env(settings, _start_variables(None, cores), broker=broker)
            self._start(missing, running, wanted)
            if "influxdb" in wanted:
                InfluxDB(self.settings.url("INFLUXDB_PORT")).create_database()

    def require(self, on_demand: Sequence[str]) -> None:
        for name in on_demand:
            require_program(name)
        with changing_the_stack():
            if not self.supervisor.running():
                raise LabError("the stack is not running: start it with ./lab up")
            running = self._running()
            self._start(self._require_startable(on_demand, running), running, on_demand)

    def down(self) -> bool:
        if not self.supervisor.running():
            left = orphans()
            stop(left)
            return bool(left)
        with changing_the_stack(), working("stopping the stack"):
            self.supervisor.shutdown()
        return True

    def status(self) -> list[ComponentStatus]:
        info = self.supervisor.info()
        if not info and orphans():
            raise LabError("supervisord died and left programs running: ./lab down stops them")
        found = [self._status(name, info.get(name)) for name in COMPONENTS]
        return [each for each in found if each.name not in ON_DEMAND or each.state != "stopped"]

    def endpoints(self) -> Endpoints:
        return published(self.settings, self._running())

    driver_endpoints = endpoints

    def cpus(self) -> frozenset[int]:
        return usable_cpus()

    def limits(self) -> dict[str, int | str | None]:
        return {}

    def require_build(self, build: TargetBuild) -> None:
        if build.image or build.compose:
            named = (
                f"image {build.image}"
                if build.image
                else f"compose {paths.shown(build.compose[0])}"
            )
            raise UsageError(
                f"{named}: only the docker runtime starts the target so: ./lab down, then "
                "./lab up --runtime docker, or name a jar"
            )
        if build.jar and (missing := missing_libraries(build.jar)):
            raise UsageError(
                f"jar {paths.shown(build.jar)}: its Class-Path wants {missing[0]} beside it"
                + (f" and {len(missing) - 1} more" if missing[1:] else "")
                + ": keep the folder lib of its build next to it"
            )

    def restart_target(
        self,
        settings: Mapping[str, SettingValue],
        build: TargetBuild | None = None,
        cores: Cores | None = None,
    ) -> None:
        _require_binding(cores)
        start = _start_variables(build, cores)
        with changing_the_stack():
            self.supervisor.stop_program("target")
            require_free_ports(self.settings, "target")
            self._write_target_env(settings, start, broker="redis" in self._running())
            self._start_healthy("target")

    def target_started_with(self, build: TargetBuild | None, cores: Cores | None) -> bool:
        return _start_variables(build, cores).items() <= _read_target_variables().items()

    def target_build(self) -> RunningBuild:
        return RunningBuild(build=_read_target_variables().get(_BUILD))

    def process_ids(self) -> dict[str, int]:
        return {name: info["pid"] for name, info in self.supervisor.info().items() if info["pid"]}

    def log_command(self, component: str, follow: bool) -> list[str]:
        log = paths.LOGS / f"{component}.log"
        if not log.exists():
            raise LabError(f"{component} has no log yet: {start_command(component)} starts it")
        return ["tail", "-n", "100", *(["-F"] if follow else []), str(log)]

    def driver_path(self, name: str, testid: str) -> str:
        return str(paths.RESULTS / testid / name)

    def driver_script(self, driver: str, script: str) -> str:
        return str(
            paths.LOCUST / f"{script}.py" if driver == "locust" else paths.K6 / f"{script}.js"
        )

    def driver(
        self,
        driver: str,
        arguments: Sequence[str],
        env: Mapping[str, str],
        testid: str,
        dashboard_port: int | None = None,
        cores: Cores | None = None,
    ) -> DriverCommand:
        program = locust_program() if driver == "locust" else paths.BIN / driver
        # Beside the system's own authorities: the proxy's certificate is of this installation's.
        host = {"SSL_CERT_DIR": str(_CA_FOLDER)}
        if dashboard_port:
            host["K6_WEB_DASHBOARD_HOST"] = "127.0.0.1"
        _DRIVER_HOME.mkdir(parents=True, exist_ok=True)
        return DriverCommand(
            [str(program), *arguments],
            {**of_this_machine(_DRIVER_HOME), **env, **host},
            cpus=cores.driver if cores else (),
            folder=_DRIVER_HOME,
        )

    def _wanted(self, without: Sequence[str], on_demand: Sequence[str]) -> list[str]:
        wanted = components_wanted(without, on_demand)
        for name in on_demand:
            require_program(name)
        if "grafana" in wanted and find_grafana() is None:
            say(GRAFANA_ADVICE)
            wanted.remove("grafana")
        return wanted

    def _running(self) -> list[str]:
        return [
            name
            for name, process in self.supervisor.info().items()
            if process["statename"] in ("RUNNING", "STARTING")
        ]

    def _require_startable(self, wanted: Sequence[str], running: Sequence[str]) -> list[str]:
        """What of the wanted does not run: its ports are free, and the secrets are there."""
        missing = [name for name in wanted if name not in running]
        for name in missing:
            require_free_ports(self.settings, name)
        _make_secrets()
        return missing

    def _start(self, missing: Sequence[str], running: Sequence[str], wanted: Sequence[str]) -> None:
        """Starts what is missing beside what runs, and waits until what is wanted is healthy."""
        _write_scrape_targets(self.settings, [*running, *missing])
        with working(f"starting {', '.join(missing)}" if missing else "checking the stack"):
            for name in missing:
                self.supervisor.start_program(name)
            self._wait_healthy(wanted)
        if "redis" in missing and "target" in running:
            self._tell_target_of_broker()

    def _tell_target_of_broker(self) -> None:
        before = _read_target_variables()
        after = {**before, _BROKER: self._broker_url()}
        if before != after:
            _write_target_variables(after)
            say("restarting the target: it learns of the broker only at its start")
            self.supervisor.stop_program("target")
            self._start_healthy("target")

    def _start_healthy(self, name: str) -> None:
        self.supervisor.start_program(name)
        self._wait_healthy([name])

    def _wait_healthy(self, names: Sequence[str]) -> None:
        urls = {name: self._health_url(name) for name in names}
        wait_healthy(urls, _HEALTHY_SECONDS, failure=self._failure)

    def _health_url(self, name: str) -> str:
        if name == "redis":
            return self._broker_url()
        return self.settings.url(PORTS[name][-1]) + _HEALTH_PATHS[name]

    def _broker_url(self) -> str:
        return f"redis://{address(self.settings, 'redis')}"

    def _failure(self, name: str) -> str | None:
        """The last line of the log of a program that supervisor has given up."""
        state = self.supervisor.info().get(name, {}).get("statename")
        if state not in ("FATAL", "EXITED", "UNKNOWN"):
            return None
        log = paths.LOGS / f"{name}.log"
        lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
        return f"{lines[-1] if lines else 'it exited'} (./lab logs {name})"

    def _status(self, name: str, process: Mapping[str, object] | None) -> ComponentStatus:
        where = address(self.settings, name)
        if process is None:
            return ComponentStatus(name, "stopped", where)
        state = str(process["statename"]).lower()
        if state == "running":
            now, start = float(str(process["now"])), float(str(process["start"]))
            return ComponentStatus(name, state, where, f"for {timedelta(seconds=now - start)}")
        detail = str(process["spawnerr"] or process["description"])
        return ComponentStatus(name, state, where, "" if detail == "Not started" else detail)

    def _started_with(self) -> StackSettings | None:
        if not self.supervisor.running() or not _SETTINGS.exists():
            return None
        values = {**self.asked.defaults, **json.loads(_SETTINGS.read_text())}
        return StackSettings(values, self.asked.defaults)

    def _refuse_other_settings(self) -> None:
        """What is the target's or a run's changes with a restart of the target, the rest with one
        of all."""
        changeable = {*load_target_declaration().settings, DRIVER_CPUS, TARGET_CPUS}
        for name, value in self.asked.values.items():
            running = self.settings.values.get(name)
            if name not in changeable and running != value:
                raise LabError(
                    f"the stack runs with {name}={running}, not {value}: ./lab down first"
                )

    def _write_target_env(
        self, settings: Mapping[str, SettingValue], start: Mapping[str, str], *, broker: bool
    ) -> None:
        own = {
            **start,
            "TARGET_ADDRESS": self.settings.bind,
            "TARGET_PORT": self.settings.port("TARGET_PORT"),
            "TARGET_MANAGEMENT_PORT": self.settings.port("TARGET_MANAGEMENT_PORT"),
            "AUTHZ_PRIVATE_KEY_FILE": _SECRETS / "authz" / "private-key.pem",
            "AUTHZ_PUBLIC_KEY_FILE": _SECRETS / "authz" / "public-key.pem",
            _BROKER: self._broker_url() if broker else "",
        }
        _write_target_variables(own | as_variables(settings))

    def _prepare(self) -> None:
        stores = (_DATA / name for name in ("prometheus", "influxdb", "grafana"))
        for folder in (paths.STATE, paths.LOGS, *stores):
            folder.mkdir(parents=True, exist_ok=True)
        _write_prometheus_folder()
        _SETTINGS.write_text(json.dumps(self.settings.values))

    def _environment(self) -> dict[str, str]:
        """What host/supervisord.conf and the start scripts expand."""
        return {
            **self.settings.values,
            "LAB_ROOT": str(paths.ROOT),
            "LAB_BIN": str(paths.BIN),
            "LAB_STATE": str(paths.STATE),
            "LAB_LOGS": str(paths.LOGS),
            "LAB_DATA": str(_DATA),
            "LAB_SECRETS": str(_SECRETS),
            "LAB_GRAFANA_HOME": str(find_grafana() or ""),
            "PROMETHEUS_URL": self.settings.url("PROMETHEUS_PORT"),
            "INFLUXDB_URL": self.settings.url("INFLUXDB_PORT"),
        }


def _start_variables(build: TargetBuild | None, cores: Cores | None) -> dict[str, str]:
    """Which jar, by its hash as well, and on which CPUs; empty: on all."""
    jar = build.jar if build else None
    return {
        "TARGET_JAR": str(jar or target_jar()),
        _BUILD: file_hash(jar) if jar else target_stamp(),
        "TARGET_CPUS": cpu_list(cores.target) if cores else "",
    }


def _require_binding(cores: Cores | None) -> None:
    """Raises UsageError where a start script cannot bind the target to CPUs."""
    if cores and shutil.which("taskset") is None:
        raise UsageError(
            "taskset is not on PATH, and binds the target to its CPUs: install util-linux, or set "
            "TARGET_CPUS=none (compose/.env)"
        )


def _write_prometheus_folder() -> None:
    """Links prometheus.yml and rules/, with an empty targets/ beside them."""
    shutil.rmtree(_PROMETHEUS, ignore_errors=True)
    (_PROMETHEUS / "targets").mkdir(parents=True)
    for shared in ("prometheus.yml", "rules"):
        (_PROMETHEUS / shared).symlink_to(_SHARED_PROMETHEUS / shared)


def _write_scrape_targets(settings: StackSettings, components: Sequence[str]) -> None:
    """Rewrites the docker runtime's targets/ for these; a running Prometheus reads them at once."""
    for source in sorted((_SHARED_PROMETHEUS / "targets" / "docker").glob("*.yml")):
        groups = [
            _on_host(group, settings)
            for group in yaml.safe_load(source.read_text(encoding="utf-8"))
            if group["labels"].get("component", "target") in components
        ]
        (_PROMETHEUS / "targets" / source.name).write_text(yaml.safe_dump(groups), encoding="utf-8")


def _on_host(group: dict[str, Any], settings: StackSettings) -> dict[str, Any]:
    """The same group at this machine's addresses, found by the port that the service has inside."""
    ports = [int(address.rpartition(":")[2]) for address in group["targets"]]
    # Once each: replicas are a matter of containers.
    names = dict.fromkeys(settings.port_name_by_default(port) for port in ports)
    return {**group, "targets": [f"{settings.bind}:{settings.port(name)}" for name in names]}


def _make_secrets() -> None:
    """Makes what is missing, and what soon ends, by the program that does so in Compose
    (services/secrets). Raises LabError with the program's own line."""
    _SECRETS.mkdir(mode=0o700, parents=True, exist_ok=True)
    result = subprocess.run(
        [str(paths.BIN / "spikelab-init"), "--folder", str(_SECRETS)],
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        said = result.stderr.strip().splitlines()
        raise LabError(f"no secrets: {said[-1] if said else result.returncode}")


def _write_target_variables(values: Mapping[str, object]) -> None:
    """Writes the variables that host/start-target reads at each start of the target."""
    lines = [f"{name}={shlex.quote(str(value))}" for name, value in values.items()]
    _TARGET_ENV.write_text("\n".join(lines) + "\n")


def _read_target_variables() -> dict[str, str]:
    """The variables of the target's last start; empty before the first."""
    if not _TARGET_ENV.exists():
        return {}
    pairs = (word.partition("=") for word in shlex.split(_TARGET_ENV.read_text()))
    return {name: value for name, _, value in pairs}
