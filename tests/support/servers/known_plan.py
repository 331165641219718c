"""The plan of a search for the capacity of a server that is known, and what is known of it."""

import math
from dataclasses import dataclass
from pathlib import Path

from scipy.optimize import brentq

_PLAN = """
name: known
about: A server whose capacity is known
script: steady
parameters:
  rate: {{about: requests a second, default: 100.0}}
target: {{url: "{url}"}}
request: {{path: /, timeout: 5s}}
phases:
  - {{name: warm-up, kind: rate, value: "${{rate}}", duration: 1s, judged: false{keys}}}
  - {{name: step, kind: rate, value: "${{rate}}", duration: {duration}{keys}}}
slo: [success >= 99%, {objective}]
capacity:
  first: {first}
  lowest: 50
  highest: 3000
  growth: {growth}
  precision: {precision}
  confirmations: {confirmations}
"""


# Of a phase: requests come at random.
POISSON = ", arrival: poisson"


@dataclass(frozen=True)
class RandomServer:
    """Workers of exponential service times with this mean, asked at random moments (M/M/c).

    `limit_seconds`: the objective of the 95th percentile.
    """

    workers: int
    service_seconds: float
    limit_seconds: float

    @property
    def arguments(self) -> list[str]:
        """Of `python -m tests.support.servers.known_capacity`."""
        sizes = ["--workers", str(self.workers), "--service", str(self.service_seconds)]
        return [*sizes, "--times", "exponential"]

    @property
    def objective(self) -> str:
        return f"p95 < {self.limit_seconds * 1000:g}ms"

    def capacity(self) -> float:
        """Requests a second at which exactly 5 % take longer than the limit."""
        most = self.workers / self.service_seconds
        return float(brentq(lambda rate: self.slow_share(rate) - 0.05, most / 10, 0.999 * most))

    def slow_share(self, rate: float) -> float:
        """Of answers that take longer than the limit, by Erlang's C formula (Kleinrock, Queueing
        Systems 1 (1975), ch. 3); the wait of those that wait is exponential, and so is the
        service."""
        served, spare = 1 / self.service_seconds, self.workers / self.service_seconds - rate
        load, limit = rate * self.service_seconds, self.limit_seconds
        blocked = 1.0
        for worker in range(1, self.workers + 1):
            blocked = load * blocked / (worker + load * blocked)
        waits = blocked / (1 - load / self.workers * (1 - blocked))
        both = (served * math.exp(-spare * limit) - spare * math.exp(-served * limit)) / (
            served - spare
        )
        return (1 - waits) * math.exp(-served * limit) + waits * both


def plan(
    folder: Path,
    url: str,
    objective: str,
    first: float,
    *,
    duration: str = "5s",
    growth: float = 1.5,
    precision: str = "5%",
    confirmations: int = 1,
    keys: str = "",
) -> str:
    path = folder / "known.yaml"
    path.write_text(
        _PLAN.format(
            url=url,
            objective=objective,
            first=first,
            duration=duration,
            growth=growth,
            precision=precision,
            confirmations=confirmations,
            keys=keys,
        )
    )
    return str(path)
