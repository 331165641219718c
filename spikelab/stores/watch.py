"""Whether the stores that a run needs are there, before and after it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import httpx

from spikelab.errors import LabError
from spikelab.http_client import client
from spikelab.runtime import Endpoints

# A store that crashed is started again at once: it is given so long.
_BACK_SECONDS = 10.0
_POLL_SECONDS = 0.25
_ANSWER_SECONDS = 2


@dataclass(frozen=True)
class Stores:
    """The health checks of stores, by their names."""

    health: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, endpoints: Endpoints) -> Self:
        """Those that are there now."""
        health = {"Prometheus": f"{endpoints.prometheus}/-/ready"}
        if endpoints.influxdb:
            health["InfluxDB"] = f"{endpoints.influxdb}/ping"
        return cls(health)

    def missing(self) -> list[str]:
        """The stores that have gone and do not come back."""
        deadline = time.monotonic() + _BACK_SECONDS
        missing = [name for name, url in self.health.items() if not _answers(url)]
        while missing and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
            missing = [name for name in missing if not _answers(self.health[name])]
        return missing

    def require(self) -> None:
        """Raises LabError naming the stores that have gone."""
        if missing := self.missing():
            raise LabError(f"{self.named(missing)} does not answer: ./lab up starts it again")

    def named(self, names: Sequence[str]) -> str:
        """Stores with their addresses."""
        return ", ".join(f"{name} ({self.health[name]})" for name in names)


def _answers(url: str) -> bool:
    try:
        return client.get(url, timeout=_ANSWER_SECONDS).is_success
    except httpx.HTTPError:
        return False
