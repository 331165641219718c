"""What both runtimes publish on this machine, and where."""

from collections.abc import Callable, Collection, Sequence

from spikelab.errors import UsageError, did_you_mean
from spikelab.runtime import COMPONENTS, ON_DEMAND, OPTIONAL, Endpoints
from spikelab.stack_settings import StackSettings

# The proxy's listeners: each topology's port.
TOPOLOGIES = {
    "sidecar": "PROXY_SIDECAR_PORT",
    "headers": "PROXY_HEADERS_PORT",
    "tunnel": "PROXY_TUNNEL_PORT",
    "tunnel_sidecar": "PROXY_TUNNEL_SIDECAR_PORT",
    "tls": "PROXY_TLS_PORT",
}
# Each component's ports by their variables: users speak to the first, the last tells its health.
PORTS = {
    "influxdb": ("INFLUXDB_PORT",),
    "prometheus": ("PROMETHEUS_PORT",),
    "redis": ("REDIS_PORT",),
    "target": ("TARGET_PORT", "TARGET_MANAGEMENT_PORT"),
    "sockets": ("SOCKETS_EXPORTER_PORT",),
    "proxy": (*TOPOLOGIES.values(), "PROXY_METRICS_PORT"),
    "grafana": ("GRAFANA_PORT",),
}
# It asks for no password and can revoke every token, so it never listens for other machines.
_LOOPBACK_ONLY = {"redis": "127.0.0.1"}


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
