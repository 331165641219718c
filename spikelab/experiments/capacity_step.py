"""The verdict of a step of a capacity search, and what it missed."""

from collections.abc import Sequence

from spikelab.experiments.capacity_answer import CapacityStep, Miss
from spikelab.experiments.limits import Limit, first_unseen
from spikelab.judge import (
    judge_by_bounds,
    leaves_a_queue,
    objective_by_bounds,
    short_of_capacity,
)
from spikelab.measure import TARGET_DIED
from spikelab.record import RunRecord, Step, Verdict
from spikelab.slo import Objective
from spikelab.units import show_seconds

# Of what was started, but for one request.
_ANSWERED = 0.99


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
    if short_of_capacity(step) == "inconclusive":
        return "inconclusive", f"the driver was behind: {_started(step)}"
    if missed:
        return "fail", ", ".join(miss.text for miss in missed)
    unseen = first_unseen(limits, step.resources)
    if unseen:
        return "inconclusive", f"{unseen.text}: the lab did not see how much was used"
    if objectives and judge_by_bounds(step, objectives) == "inconclusive":
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


def _started(step: Step) -> str:
    return f"{step.started_rate or 0:,.4g}/s were started of {step.offered_rate:,.4g}/s"


def _left_behind(step: Step, objectives: Sequence[Objective]) -> list[Miss]:
    """What an overload leaves: work that was not done in time, and so a queue."""
    missed = []
    if short_of_capacity(step) == "fail":
        missed.append(Miss(kind="rate", text=_started(step)))
    if not step.offered_rate or not step.started_rate:
        return missed
    queue = leaves_a_queue(step, objectives)
    seconds = step.requests / step.started_rate
    longer = seconds + _late_seconds(step, objectives, queue)
    # But for one request, as with those that were started.
    enough = round(_ANSWERED * step.requests * longer / seconds, 9) - 1
    if step.completed < enough and not missed:
        text = f"{step.completed / longer:,.4g}/s were answered of {step.started_rate:,.4g}/s"
        missed.append(Miss(kind="rate", text=text))
    if queue:
        after = show_seconds(step.drain_seconds)
        text = f"a queue was left: its last answer came {after} after the end"
        missed.append(Miss(kind="queue", text=text))
    return missed


def _late_seconds(step: Step, objectives: Sequence[Objective], queue: bool) -> float:
    """By how much its last answers came later than they may."""
    usual = step.latency_seconds.p50 or 0.0
    limits = [each.limit for each in objectives if each.key != "success"]
    if limits:
        # What the objectives allow is in time.
        return max(0.0, step.drain_seconds - max(*limits, usual)) if queue else 0.0
    # Without a limit nobody counts late answers. A queue that grows makes many slower than the
    # median, a straggler does not.
    end = min(step.drain_seconds, step.latency_seconds.p95 or 0.0)
    return max(0.0, end - usual)
