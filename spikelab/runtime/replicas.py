"""The targets of compose/docker-compose.replicas.yml beside the first."""

import re
from collections.abc import Collection, Mapping
from typing import Any

# Their services: each is of the target's build, and beside it its network's and its exporter's.
REPLICA = re.compile(r"target-\d+")
_NETWORK = re.compile(r"target-network-\d+")
_ANY = re.compile(r"(target|target-network|sockets-exporter)-\d+")
_MANAGEMENT_PORT = 8081
_SOCKETS_PORT = 9100


def replicas(rows: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Where each tells its metrics and its sockets', from the engine's rows of containers: their
    ports are any that were free. Without those of which the engine does not say it."""
    found = [_urls(rows[name]) for name in _networks(rows)]
    return [urls for urls in found if urls]


def unseen(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The networks of running replicas that cannot be looked at."""
    return [name for name in _networks(rows) if _urls(rows[name]) is None]


def running_replicas(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return _running(rows, REPLICA)


def strays(rows: Mapping[str, Mapping[str, Any]], wanted: Collection[str]) -> list[str]:
    """Running services of replicas that are none of those wanted: somebody else started them."""
    return [name for name in _running(rows, _ANY) if name not in wanted]


def _networks(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return _running(rows, _NETWORK)


def _running(rows: Mapping[str, Mapping[str, Any]], kind: re.Pattern[str]) -> list[str]:
    return sorted(
        name for name, row in rows.items() if kind.fullmatch(name) and row["State"] == "running"
    )


def _urls(row: Mapping[str, Any]) -> tuple[str, str] | None:
    ports = row.get("Publishers") or ()
    urls = {port.get("TargetPort"): _url(port) for port in ports if port.get("PublishedPort")}
    management, sockets = urls.get(_MANAGEMENT_PORT), urls.get(_SOCKETS_PORT)
    return (management, sockets) if management and sockets else None


def _url(port: Mapping[str, Any]) -> str | None:
    host = port.get("URL")
    if host and ":" in host:
        host = f"[{host}]"
    return f"http://{host}:{port['PublishedPort']}" if host else None
