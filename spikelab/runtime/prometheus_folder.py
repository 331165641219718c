"""Prometheus' configuration for the host runtime: shared files, this machine's addresses."""

import shutil
from collections.abc import Sequence
from typing import Any

import yaml

from spikelab import paths
from spikelab.stack_settings import StackSettings

FOLDER = paths.STATE / "prometheus"
_SHARED = paths.ROOT / "prometheus"


def write_prometheus_folder() -> None:
    """Links prometheus.yml and rules/, with an empty targets/ beside them."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    (FOLDER / "targets").mkdir(parents=True)
    for shared in ("prometheus.yml", "rules"):
        (FOLDER / shared).symlink_to(_SHARED / shared)


def write_targets(settings: StackSettings, components: Sequence[str]) -> None:
    """Rewrites the docker runtime's targets/ for these; a running Prometheus reads them at once."""
    for source in sorted((_SHARED / "targets" / "docker").glob("*.yml")):
        groups = [
            _on_host(group, settings)
            for group in yaml.safe_load(source.read_text(encoding="utf-8"))
            if group["labels"].get("component", "target") in components
        ]
        (FOLDER / "targets" / source.name).write_text(yaml.safe_dump(groups), encoding="utf-8")


def _on_host(group: dict[str, Any], settings: StackSettings) -> dict[str, Any]:
    """The same group at this machine's addresses, found by the port that the service has inside."""
    ports = [int(address.rpartition(":")[2]) for address in group["targets"]]
    # Once each: replicas are a matter of containers.
    names = dict.fromkeys(settings.port_name_by_default(port) for port in ports)
    return {**group, "targets": [f"{settings.bind}:{settings.port(name)}" for name in names]}
