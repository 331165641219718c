"""Judged steps from what the driver said of the phases."""

from datetime import datetime, timedelta

from spikelab.drivers.summary import PhaseSummary
from spikelab.judge import generator_limited, judge_step
from spikelab.plans.model import Plan
from spikelab.plans.phases import Phase
from spikelab.record import Step, StepGenerator
from spikelab.usage import Usage


def build_step(
    phase: Phase,
    happened: PhaseSummary,
    plan: Plan,
    variant: str | None,
    repeat: int,
) -> Step:
    """A phase's step, not judged yet. Its window is the time in which requests were to start: the
    phase, or of a spike the moment in which its users start. The rest is drain, but for the time
    that jitter took."""
    window = (happened.start_spread_seconds or 0.0) if plan.spike else phase.duration_seconds
    started = happened.started if plan.spike else happened.begun
    taken = max(window, (happened.ended - started).total_seconds())
    drain = max(0.0, taken - window - phase.jitter_seconds)
    length = window + drain
    return Step(
        name=phase.name,
        phase=phase.name,
        variant=variant,
        repeat=repeat,
        started=started,
        ended=started + timedelta(seconds=taken),
        offered_rate=plan.offered_rate(phase),
        started_rate=_rate(happened.requests, window),
        achieved_rate=_rate(happened.completed, length),
        goodput=_rate(_within_slo(happened), length if plan.spike else window),
        requests=happened.requests,
        completed=happened.completed,
        dropped=happened.dropped,
        failures=happened.failures,
        errors=happened.errors,
        slow=happened.slow,
        late_answers=happened.late_answers,
        response_bytes_mean=happened.response_bytes_mean,
        latency_seconds=happened.latency_seconds,
        latency_mean_seconds=happened.latency_mean_seconds,
        latency_with_failures_seconds=happened.latency_with_failures_seconds,
        drain_seconds=round(drain, 3),
        start_spread_seconds=happened.start_spread_seconds if plan.spike else None,
        slo=plan.slo if phase.slo is None else phase.slo,
        verdict="inconclusive",
    )


def judge(step: Step, phase: Phase, plan: Plan, driver: Usage, cpus: int) -> None:
    """Fills in the driver's health during the step, and the verdict."""
    use = driver.between(step.started, _window_end(step, phase, plan))
    if use is None:
        use = driver.overall()
    step.generator = StepGenerator(
        cpu=round(use.cores, 3) if use else None,
        waiting=round(use.waiting, 3) if use else None,
        limited=generator_limited(use, cpus, plan.driver),
    )
    end_rate = phase.value if plan.slopes else None
    tried = _tried(step, phase, plan)
    step.verdict = judge_step(step, plan.objectives_of(phase), tried, end_rate)


def _tried(step: Step, phase: Phase, plan: Plan) -> int | None:
    """Iterations of k6's schedule; Locust's users wait for their answers, so they have none."""
    if step.offered_rate is None or plan.driver != "k6":
        return None
    return int(step.offered_rate * phase.duration_seconds)


def _window_end(step: Step, phase: Phase, plan: Plan) -> datetime:
    if plan.spike:
        return step.ended
    return step.started + timedelta(seconds=phase.duration_seconds)


def _within_slo(happened: PhaseSummary) -> int:
    """Good answers but those above the loosest latency limit, which fewest are."""
    too_slow = min(happened.slow.values(), default=0)
    return happened.requests - happened.failures - too_slow


def _rate(count: int, seconds: float) -> float | None:
    return round(count / seconds, 3) if seconds > 0 else None
