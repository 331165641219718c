"""Addresses of the stack: compose/.env.example declares them, compose/.env and the environment
override them. Both runtimes read the same names."""

import os
from dataclasses import dataclass

from dotenv import dotenv_values

from spikelab import paths
from spikelab.errors import UsageError

PORT_NAMES = (
    "TARGET_PORT",
    "TARGET_MANAGEMENT_PORT",
    "SOCKETS_EXPORTER_PORT",
    "PROMETHEUS_PORT",
    "INFLUXDB_PORT",
    "GRAFANA_PORT",
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
        text = self.values[name]
        if not text.isdigit() or not 1 <= int(text) <= 65535:
            raise UsageError(f"{name}={text}: must be a port number from 1 to 65535 (compose/.env)")
        return int(text)

    def port_name_by_default(self, port: int) -> str:
        """The variable whose default is this port: a service's own inside the compose network."""
        return next(name for name in PORT_NAMES if self.defaults[name] == str(port))

    def url(self, port_name: str) -> str:
        """Where this machine reaches the component, e.g. ``http://127.0.0.1:9090``."""
        host = "127.0.0.1" if self.bind == "0.0.0.0" else self.bind
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
    for name in PORT_NAMES:
        settings.port(name)
    return settings


def _is_ours(name: str, known: dict[str, str | None]) -> bool:
    return name in known or name.startswith(("TOMCAT_", "TARGET_"))
