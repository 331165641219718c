"""The settings of the stack and of its target, and the addresses that follow from them.

compose/.env.example declares those of the stack, which compose/.env and the environment override;
both runtimes read the same names. The target's are declared in its target.yml and validated here
before anything starts; the target reads the file as well (Setting.java), and
tests/data/target_settings.json holds both to one meaning.
"""

import ipaddress
import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Literal

import yaml
from dotenv import dotenv_values
from pydantic import BaseModel, ConfigDict

from spikelab import paths
from spikelab.errors import UsageError, did_you_mean
from spikelab.units import parse_whole_number, show_value

# The proxy's listeners: each topology's port.
TOPOLOGIES = {
    "sidecar": "PROXY_SIDECAR_PORT",
    "headers": "PROXY_HEADERS_PORT",
    "tunnel": "PROXY_TUNNEL_PORT",
    "tunnel_sidecar": "PROXY_TUNNEL_SIDECAR_PORT",
    "tls": "PROXY_TLS_PORT",
}
# Each component's ports by their variables: users speak to the first, the last tells its health.
# In the order of start: stores before those that write to them.
PORTS = {
    "influxdb": ("INFLUXDB_PORT",),
    "prometheus": ("PROMETHEUS_PORT",),
    "redis": ("REDIS_PORT",),
    "target": ("TARGET_PORT", "TARGET_MANAGEMENT_PORT"),
    "sockets": ("SOCKETS_EXPORTER_PORT",),
    "proxy": (*TOPOLOGIES.values(), "PROXY_METRICS_PORT"),
    "grafana": ("GRAFANA_PORT",),
}
PORT_NAMES = tuple(chain.from_iterable(PORTS.values()))
COMPONENTS = tuple(PORTS)
# Left out unless asked for, and started unless left out.
ON_DEMAND = ("redis", "proxy")
OPTIONAL = ("grafana", "influxdb")
# It asks for no password and can revoke every token, so it never listens for other machines.
_LOOPBACK_ONLY = {"redis": "127.0.0.1"}

DATABASE = "myk6db"

# The target's variables that begin so are its settings, misspelt ones included: whoever resolves
# them says what is wrong.
_TARGET_PREFIX = "TOMCAT_"


@dataclass(frozen=True)
class StackSettings:
    """Ports and the bind address; ``values`` holds every variable, target settings included."""

    values: dict[str, str]
    defaults: dict[str, str]

    @property
    def bind(self) -> str:
        return self.values["LAB_BIND"]

    def port(self, name: str) -> int:
        """A port by its variable's name. Raises UsageError when it is no port number."""
        number = parse_whole_number(self.values[name])
        if number is None or not 1 <= number <= 65535:
            raise UsageError(
                f"{name}={self.values[name]}: must be a port number from 1 to 65535 (compose/.env)"
            )
        return number

    def port_name_by_default(self, port: int) -> str:
        """The variable whose default is this port: a service's own inside the compose network."""
        return next(name for name in PORT_NAMES if self.defaults[name] == str(port))

    def url(self, port_name: str) -> str:
        """Where this machine reaches the component, e.g. ``http://127.0.0.1:9090``."""
        address = ipaddress.ip_address(self.bind)
        if address.is_unspecified:
            address = ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
        host = f"[{address}]" if address.version == 6 else str(address)
        return f"http://{host}:{self.port(port_name)}"


def load_stack_settings() -> StackSettings:
    """Defaults, then compose/.env, then the environment. Empty values count as unset."""
    values: dict[str, str] = {}
    known = dotenv_values(paths.ENV_EXAMPLE)
    for source in (known, dotenv_values(paths.ENV_FILE), os.environ):
        values.update(
            {name: value for name, value in source.items() if value and _is_ours(name, known)}
        )
    defaults = {name: value for name, value in known.items() if value}
    settings = StackSettings(values, defaults)
    _check(settings)
    return settings


def _check(settings: StackSettings) -> None:
    try:
        ipaddress.ip_address(settings.bind)
    except ValueError as error:
        raise UsageError(
            f"LAB_BIND={settings.bind}: must be an IP address of this machine (compose/.env)"
        ) from error
    used: dict[int, str] = {}
    # In the order of compose/.env.example: of two, the later one is to change.
    for name in filter(PORT_NAMES.__contains__, settings.defaults):
        other = used.setdefault(settings.port(name), name)
        if other != name:
            raise UsageError(f"{name}={settings.port(name)}: is {other} already (compose/.env)")


def _is_ours(name: str, known: dict[str, str | None]) -> bool:
    return name in known or name.startswith(_TARGET_PREFIX)


@dataclass(frozen=True)
class Endpoints:
    """Base URLs, each without a trailing slash; None for a component that is not there.

    `proxy` has one for each topology: sidecar, headers, tunnel, tunnel_sidecar, tls. `replicas`: of
    further targets behind the proxy, where each tells its metrics and where its sockets'.
    """

    target: str
    management: str
    sockets: str
    prometheus: str
    influxdb: str | None
    grafana: str | None
    redis: str | None = None
    proxy: Mapping[str, str] | None = None
    replicas: Sequence[tuple[str, str]] = ()


def published(settings: StackSettings, running: Collection[str]) -> Endpoints:
    """The addresses as this machine sees them; None for an optional component not running."""
    url = settings.url
    return Endpoints(
        target=url("TARGET_PORT"),
        management=url("TARGET_MANAGEMENT_PORT"),
        sockets=url("SOCKETS_EXPORTER_PORT"),
        prometheus=url("PROMETHEUS_PORT"),
        influxdb=url("INFLUXDB_PORT") if "influxdb" in running else None,
        grafana=url("GRAFANA_PORT") if "grafana" in running else None,
        redis=f"redis://{address(settings, 'redis')}" if "redis" in running else None,
        proxy=topologies(url) if "proxy" in running else None,
    )


def topologies(url: Callable[[str], str]) -> dict[str, str]:
    """Each topology's URL, from that of its port: HTTPS where it speaks TLS to the client."""
    urls = {name: url(port_name) for name, port_name in TOPOLOGIES.items()}
    return urls | {"tls": urls["tls"].replace("http:", "https:", 1)}


def bind_address(settings: StackSettings, component: str) -> str:
    """Where a component listens."""
    return _LOOPBACK_ONLY.get(component, settings.bind)


def address(settings: StackSettings, component: str) -> str:
    """`host:port` that users speak to."""
    return f"{bind_address(settings, component)}:{settings.port(PORTS[component][0])}"


def start_command(component: str) -> str:
    """What a user types to have it started."""
    return "./lab up" + (f" --with {component}" if component in ON_DEMAND else "")


def components_wanted(without: Sequence[str], on_demand: Sequence[str]) -> list[str]:
    """The components to start, in that order. Raises UsageError for a wrong choice."""
    for name in without:
        if name not in OPTIONAL:
            raise UsageError(f"--without {name}: only {' and '.join(OPTIONAL)} can be left out")
    for name in on_demand:
        if name not in ON_DEMAND:
            raise UsageError(
                f"--with {name}: only {' and '.join(ON_DEMAND)} are started on demand"
                + did_you_mean(name, ON_DEMAND)
            )
    left_out = {*without, *ON_DEMAND} - {*on_demand}
    return [name for name in COMPONENTS if name not in left_out]


SettingValue = int | bool | str


class Setting(BaseModel):
    """One setting as target.yml declares it."""

    model_config = ConfigDict(extra="forbid")

    about: str
    property: str
    type: Literal["integer", "milliseconds", "boolean", "choice"]
    default: SettingValue
    choices: list[str] = []
    minimum: int = 0
    maximum: int = 2**31 - 1
    default_follows: str | None = None
    at_most: str | None = None
    needs_java: int | None = None

    def parse(self, name: str, text: str) -> SettingValue:
        """The value of a text such as ``200`` or ``true``. Raises UsageError in one line."""
        if self.type == "boolean":
            if text.lower() not in ("true", "false"):
                raise UsageError(f"{name}={text}: must be true or false (target.yml)")
            return text.lower() == "true"
        if self.type == "choice":
            if text not in self.choices:
                known = " or ".join(self.choices)
                raise UsageError(
                    f"{name}={text}: must be {known} (target.yml)"
                    + did_you_mean(text, self.choices)
                )
            return text
        number = parse_whole_number(text)
        if number is None or not self.minimum <= number <= self.maximum:
            unit = " of milliseconds" if self.type == "milliseconds" else ""
            raise UsageError(
                f"{name}={text}: must be a whole number{unit} from {self.minimum} "
                f"to {self.maximum} (target.yml)"
            )
        return number

    def exported(self, value: SettingValue) -> float | None:
        """The value as `tomcat_setting` shows it: a choice is its place in the list, a negative
        number unlimited (None)."""
        number = float(self.choices.index(value) if isinstance(value, str) else value)
        return None if number < 0 else number


class TargetDeclaration(BaseModel):
    """A target.yml: its name and its settings by environment variable."""

    model_config = ConfigDict(extra="forbid")

    name: str
    about: str
    settings: dict[str, Setting]

    def given(self, variables: Mapping[str, str]) -> dict[str, str]:
        """The target's settings among the variables, misspelt ones included."""
        return {
            name: value
            for name, value in variables.items()
            if name in self.settings or name.startswith(_TARGET_PREFIX)
        }

    def resolve(self, *layers: Mapping[str, object]) -> dict[str, SettingValue]:
        """Every setting's value: the defaults, overridden layer by layer, last wins.

        Raises UsageError for an unknown name or a value out of its range.
        """
        chosen: dict[str, SettingValue] = {}
        for layer in layers:
            for name, value in layer.items():
                if name not in self.settings:
                    raise UsageError(
                        f"unknown target setting '{name}'" + did_you_mean(name, self.settings)
                    )
                text = show_value(value).strip()
                if text:
                    chosen[name] = self.settings[name].parse(name, text)
        return self._complete(chosen)

    def _complete(self, chosen: dict[str, SettingValue]) -> dict[str, SettingValue]:
        """Fills in the defaults, some of which depend on other settings."""

        def value_of(name: str) -> SettingValue:
            setting = self.settings[name]
            value = chosen.get(name)
            if value is None:
                follows = setting.default_follows
                value = value_of(follows) if follows else setting.default
            if not setting.at_most:
                return value
            limit = value_of(setting.at_most)
            if float(value) <= float(limit):
                return value
            if name in chosen:
                raise UsageError(
                    f"{name}={value}: may not exceed {setting.at_most}={limit} (target.yml)"
                )
            return limit

        return {name: value_of(name) for name in self.settings}


@cache
def load_target_declaration(folder: Path = paths.TARGET) -> TargetDeclaration:
    """The declaration of the target in a folder of targets/."""
    return TargetDeclaration.model_validate(
        yaml.safe_load((folder / "target.yml").read_text(encoding="utf-8"))
    )


def as_variables(settings: Mapping[str, SettingValue]) -> dict[str, str]:
    """Settings as environment variables of the target."""
    return {name: show_value(value) for name, value in settings.items()}


LOCUST_PROCESSES = "LOCUST_PROCESSES"
# As Locust has it: one for each CPU.
_ALL_CPUS = "-1"


def locust_processes() -> float:
    """How many processes of Locust have users; infinite for as many as there are CPUs.

    What is no number Locust refuses itself.
    """
    text = os.environ.get(LOCUST_PROCESSES, "").strip()
    return math.inf if text == _ALL_CPUS else max(1, parse_whole_number(text) or 1)
