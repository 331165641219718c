"""What the target's container was started with, as the engine knows it."""

import json
from collections.abc import Collection
from typing import Any

from spikelab import paths
from spikelab.runtime.builds import services_of
from spikelab.runtime.compose import SERVICES, containers, inspected
from spikelab.runtime.container_start import LABEL, ContainerStart
from spikelab.stack_settings import target_settings_of
from spikelab.target_settings import load_target_declaration

# Services whose network is another's: made anew with it.
_FOLLOWERS = {"target-network": ("sockets-exporter",)}


def image_id(image: str) -> str | None:
    """An image's digest; None where it is not here."""
    found: str | None = inspected("image", image, "{{json .Id}}")
    return found


def _config(service: str) -> dict[str, Any]:
    """How a service's container is configured; empty where there is none."""
    row = containers().get(service)
    return (inspected("container", row["ID"], "{{json .Config}}") if row else None) or {}


def target_label(service: str = SERVICES["target"]) -> dict[str, Any]:
    """What the target, or a replica, was started with besides its settings; empty: its own build on
    all CPUs."""
    label: dict[str, Any] = json.loads((_config(service).get("Labels") or {}).get(LABEL) or "{}")
    return label


def running_settings() -> dict[str, str]:
    """The settings that the target runs with, whatever compose/.env says now."""
    pairs = (text.partition("=") for text in _config(SERVICES["target"]).get("Env") or ())
    values = {name: value for name, _, value in pairs}
    return target_settings_of(values, load_target_declaration().settings)


def changed_services(named: Collection[str], start: ContainerStart) -> list[str]:
    """The services among these to be made anew beside the target: the lab's own where they run,
    and what this start's files bring along."""
    own = {*services_of(paths.COMPOSE_FILE)}
    running = {name for name, row in containers().items() if row["State"] == "running"}
    follow = {each for name in named for each in _FOLLOWERS.get(name, ())}
    return sorted(({*named, *follow} & own & running) | ({*start.services} - own))
