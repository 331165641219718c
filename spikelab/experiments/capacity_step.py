"""The verdict of a step of a capacity search, and what it missed."""

from collections.abc import Sequence

from spikelab.experiments.capacity_answer import CapacityStep, Miss
from spikelab.experiments.limits import Limit, first_unseen
from spikelab.judge import judge_by_bounds, objective_by_bounds
from spikelab.measure import TARGET_DIED
from spikelab.record import RunRecord, Step, Verdict
from spikelab.slo import Objective
from spikelab.units import show_seconds

# Of its rate, counting the time that the last answers took beyond what they may.
_REACHED = 0.99


def died(record: RunRecord) -> bool:
    return TARGET_DIED in record.reasons


def judged(
    record: RunRecord, value: float, objectives: Sequence[Objective], limits: Sequence[Limit]
) -> CapacityStep:
    """A run's step, judged by exact bounds of its counts and by what the target used.

    `value`: of the parameter that is searched. A run in which the target died fails.
    """
    if died(record) or not record.steps:
        missed = [Miss(kind="death", text=TARGET_DIED)]
        return CapacityStep(
            testid=record.testid, value=value, verdict="fail", missed=missed, why=TARGET_DIED
        )
    step = record.steps[-1]
    missed = _missed(step, objectives, limits)
    verdict, why = _verdict(step, objectives, limits, missed)
    due = step.requests + step.dropped
    return CapacityStep(
        testid=record.testid,
        value=value,
        verdict=verdict,
        missed=missed if verdict == "fail" else [],
        why=why,
        started_rate=step.started_rate,
        achieved_rate=step.achieved_rate,
        success=round((step.requests - step.failures) / due, 6) if due else None,
        latency_seconds=step.latency_seconds,
        resources=step.resources,
    )


def _verdict(
    step: Step, objectives: Sequence[Objective], limits: Sequence[Limit], missed: Sequence[Miss]
) -> tuple[Verdict, str]:
    if step.verdict == "inconclusive":
        # Whatever was missed may be the driver's doing.
        return "inconclusive", "the driver was the limit"
    if missed:
        return "fail", ", ".join(miss.text for miss in missed)
    verdict = judge_by_bounds(step, objectives) if objectives else "pass"
    if verdict == "fail":
        return "fail", "the rate was not reached"
    unseen = first_unseen(limits, step.resources)
    if unseen:
        return "inconclusive", f"{unseen.text}: the lab did not see how much was used"
    if verdict == "inconclusive":
        unsure = [each.text for each in objectives if objective_by_bounds(step, each) != "pass"]
        return "inconclusive", f"too few requests to decide {', '.join(unsure)}"
    return "pass", ""


def _missed(step: Step, objectives: Sequence[Objective], limits: Sequence[Limit]) -> list[Miss]:
    missed = [
        Miss(kind="objective", text=f"{objective.text} is missed")
        for objective in objectives
        if objective_by_bounds(step, objective) == "fail"
    ]
    missed += [
        Miss(kind="resource", text=f"{limit.text} is missed")
        for limit in limits
        if limit.holds(step.resources) is False
    ]
    return [*missed, *_left_behind(step, objectives)]


def _left_behind(step: Step, objectives: Sequence[Objective]) -> list[Miss]:
    """What an overload leaves: work that was not done in time, and so a queue. A usual answer's
    own time is none, and what the objectives allow is in time."""
    if not step.offered_rate or not step.started_rate:
        return []
    allowed = max((each.limit for each in objectives if each.key != "success"), default=0.0)
    usual = step.latency_seconds.p50 or 0.0
    seconds = step.requests / step.started_rate
    reached = step.completed / (seconds + max(0.0, step.drain_seconds - max(allowed, usual)))
    missed = []
    if reached < _REACHED * step.offered_rate:
        text = f"{reached:,.4g}/s were answered of {step.offered_rate:,.4g}/s"
        missed.append(Miss(kind="rate", text=text))
    queue_seconds = step.drain_seconds - usual
    if allowed and queue_seconds > allowed:
        text = f"a queue of {show_seconds(queue_seconds)} was left"
        missed.append(Miss(kind="queue", text=text))
    return missed
