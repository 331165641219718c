"""Addresses of the stack: compose/.env.example declares them, compose/.env and the environment
override them. Both runtimes read the same names."""

import ipaddress
import os
from collections.abc import Collection
from dataclasses import dataclass

from dotenv import dotenv_values

from spikelab import paths
from spikelab.errors import UsageError
from spikelab.units import parse_whole_number

PORT_NAMES = (
    "TARGET_PORT",
    "TARGET_MANAGEMENT_PORT",
    "SOCKETS_EXPORTER_PORT",
    "PROMETHEUS_PORT",
    "INFLUXDB_PORT",
    "GRAFANA_PORT",
    "REDIS_PORT",
    "PROXY_SIDECAR_PORT",
    "PROXY_HEADERS_PORT",
    "PROXY_TUNNEL_PORT",
    "PROXY_TUNNEL_SIDECAR_PORT",
    "PROXY_TLS_PORT",
    "PROXY_METRICS_PORT",
)
DATABASE = "myk6db"


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
    for name in PORT_NAMES:
        other = used.setdefault(settings.port(name), name)
        if other != name:
            raise UsageError(f"{name}={settings.port(name)}: is {other} already (compose/.env)")


def _is_ours(name: str, known: dict[str, str | None]) -> bool:
    # Unknown TOMCAT_… names too: whoever resolves the settings says what is wrong with them.
    return name in known or name.startswith("TOMCAT_")


def target_settings_of(values: dict[str, str], declared: Collection[str]) -> dict[str, str]:
    """The target's settings among the variables, misspelt ones included."""
    return {
        name: value
        for name, value in values.items()
        if name in declared or name.startswith("TOMCAT_")
    }
