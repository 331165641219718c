"""What a driver says of a run at its end, in one shape for every driver."""

from datetime import UTC, datetime, timedelta

from pydantic import BaseModel, ConfigDict

from spikelab.record import Errors, Latency


class PhaseSummary(BaseModel):
    """Exact counts, and the driver's own exact percentiles; durations in seconds.

    `requests` begun, `completed` answers of any kind, `failures` those without a good answer.
    `begun`: when the phase's event begins. `started`, `ended`: first start and last answer; where
    nothing was started both are `begun`. `slow`, `late_answers`: as in `record.Step`.
    """

    model_config = ConfigDict(extra="forbid")

    name: str
    begun: datetime
    started: datetime
    ended: datetime
    requests: int
    completed: int
    failures: int
    dropped: int
    errors: Errors
    slow: dict[str, int]
    late_answers: int | None
    latency_seconds: Latency
    latency_mean_seconds: float | None
    latency_with_failures_seconds: Latency
    start_spread_seconds: float | None
    response_bytes_mean: float | None


def from_epoch_ms(milliseconds: float) -> datetime:
    """UTC from milliseconds since 1970."""
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)
