"""What every user does for a while: a phase of the plan, or the whole of a run by hand."""

import math
from dataclasses import dataclass
from functools import cached_property

from lib.plan import Phase

# Locust starts users in batches, one a second; so far their first requests are drawn apart.
_BATCH_SECONDS = 1.0


@dataclass(frozen=True)
class Stretch:
    """Plain values, which the master sends to its workers."""

    name: str
    url: str | None = None
    # Between the starts of a user's requests; 0: the next follows the answer.
    period_seconds: float = 0.0
    # A new user's first request is somewhere in it.
    spread_seconds: float = 0.0
    body_bytes: int | None = None
    poisson: bool = False  # the period is the mean of times between starts that are chance
    # A request has waited since it was due; in a closed loop since its user was free as well.
    open_loop: bool = False
    duration_seconds: float = math.inf
    # Seconds since 1970 by the master's clock.
    ends_at: float = math.inf
    late_from: float = math.inf  # a good answer after it is late

    @classmethod
    def of(cls, phase: Phase, throughput: float, now: float, spare_seconds: float) -> "Stretch":
        """A phase that begins now, in seconds since 1970; of its rate, each user carries
        `throughput` requests a second. A good answer may come so long after its end."""
        period = phase.period_seconds(throughput)
        ends_at = now + phase.duration_seconds
        return cls(
            phase.name,
            phase.url,
            period,
            _BATCH_SECONDS if phase.ramp_up_seconds else period,
            phase.body_bytes,
            phase.poisson,
            phase.kind == "rate",
            phase.duration_seconds,
            ends_at,
            # Users have no times at which requests are due.
            ends_at + spare_seconds if phase.kind == "rate" else math.inf,
        )

    @cached_property
    def body(self) -> str | None:
        """The body of every request; None for the plan's own."""
        return None if self.body_bytes is None else "x" * self.body_bytes
