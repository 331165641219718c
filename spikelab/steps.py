"""A judged step from what the driver said of a phase."""

from spikelab.drivers.summary import PhaseSummary
from spikelab.judge import judge_step
from spikelab.plan import Plan
from spikelab.record import Generator, Step


def build_step(
    phase: PhaseSummary,
    plan: Plan,
    variant: str | None,
    repeat: int,
    generator: Generator,
) -> Step:
    """A spike's step. Its window is the moment in which its users start; the rest is drain."""
    length = (phase.ended - phase.started).total_seconds()
    window = phase.start_spread_seconds or 0.0
    return Step(
        name=phase.name,
        phase=phase.name,
        variant=variant,
        repeat=repeat,
        started=phase.started,
        ended=phase.ended,
        started_rate=_rate(phase.requests, window),
        achieved_rate=_rate(phase.completed, length),
        goodput=_rate(phase.requests - phase.failures, length),
        requests=phase.requests,
        completed=phase.completed,
        dropped=phase.dropped,
        failures=phase.failures,
        errors=phase.errors,
        response_bytes_mean=phase.response_bytes_mean,
        latency_seconds=phase.latency_seconds,
        latency_with_failures_seconds=phase.latency_with_failures_seconds,
        drain_seconds=round(max(0.0, length - window), 3),
        start_spread_seconds=phase.start_spread_seconds,
        verdict=judge_step(
            plan.objectives,
            phase.requests,
            phase.failures,
            phase.latency_with_failures_seconds.model_dump(),
            generator,
        ),
    )


def _rate(count: int, seconds: float) -> float | None:
    return round(count / seconds, 3) if seconds > 0 else None
