"""What both runtimes publish on this machine, and where."""

from collections.abc import Collection, Sequence

from spikelab.errors import UsageError
from spikelab.runtime import COMPONENTS, OPTIONAL, Endpoints
from spikelab.stack_settings import StackSettings

# Each component's ports by their variables; the first is the one that users speak to.
PORTS = {
    "influxdb": ("INFLUXDB_PORT",),
    "prometheus": ("PROMETHEUS_PORT",),
    "target": ("TARGET_PORT", "TARGET_MANAGEMENT_PORT"),
    "sockets": ("SOCKETS_EXPORTER_PORT",),
    "grafana": ("GRAFANA_PORT",),
}


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
    )


def address(settings: StackSettings, component: str) -> str:
    """`host:port` that users speak to."""
    return f"{settings.bind}:{settings.port(PORTS[component][0])}"


def components_without(without: Sequence[str]) -> list[str]:
    """All components but these, in the order of start. Raises UsageError for a needed one."""
    for name in without:
        if name not in OPTIONAL:
            raise UsageError(f"--without {name}: only {' and '.join(OPTIONAL)} can be left out")
    return [name for name in COMPONENTS if name not in without]
