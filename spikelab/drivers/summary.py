"""What a driver says of a phase at its end, in one shape for every driver."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from spikelab.record import Errors, Latency


class PhaseSummary(BaseModel):
    """Exact counts, and the driver's own exact percentiles; durations in seconds.

    `requests` begun, `completed` answers of any kind, `failures` those without a good answer.
    """

    model_config = ConfigDict(extra="forbid")

    name: str
    started: datetime
    ended: datetime
    requests: int
    completed: int
    failures: int
    dropped: int
    errors: Errors
    latency_seconds: Latency
    latency_with_failures_seconds: Latency
    start_spread_seconds: float | None
    response_bytes_mean: float | None
