"""Verdicts. Three-valued: pass, fail, inconclusive. A run that the stack or the generator spoiled
is invalid and decides nothing."""

import math
from collections.abc import Sequence

from spikelab.drivers.summary import PhaseSummary
from spikelab.plans.model import DriverName
from spikelab.plans.phases import Phase
from spikelab.record import QUANTILES, Latency, Step, Verdict
from spikelab.slo import Objective
from spikelab.usage import Use

# Above this share of the cores that it can use, the driver competes with itself: a late answer may
# be its own.
_LIMITED_SHARE_OF_CORES = 0.85
# Threads ready to run that have no core: more than half the machine's cores and twice what runs.
# docs/judging.md has the figures that this lies between.
_LIMITED_WAITING_PER_CPU = 0.5
_LIMITED_WAITING_PER_CORE_USED = 2.0
# A step that started less than this share of its offered rate cannot hold that rate.
_ENOUGH_STARTED = 0.98
# A drain that short is the last answers' own time.
_SHORT_DRAIN_SECONDS = 1.0


def generator_limited(use: Use | None, cpus: int, driver: DriverName) -> bool | None:
    """Whether the driver was short of CPU; None where it was not measured."""
    if use is None:
        return None
    # The lab's Locust is one process, which runs on one core at a time.
    usable = 1 if driver == "locust" else cpus
    crowded = max(_LIMITED_WAITING_PER_CPU * cpus, _LIMITED_WAITING_PER_CORE_USED * use.cores)
    return use.waiting > crowded or use.cores > _LIMITED_SHARE_OF_CORES * usable


def spoiled(asked: Phase, happened: PhaseSummary, spike: bool) -> list[str]:
    """Why a phase is no valid measurement; empty when it is."""
    if spike and happened.requests < asked.value:
        return [f"{asked.name}: only {happened.requests:,} of {asked.value:,} users started"]
    if not happened.requests + happened.dropped:
        return [f"{asked.name}: nothing was requested"]
    return []


def judge_step(step: Step, objectives: Sequence[Objective], tried: int | None) -> Verdict:
    """A missed objective fails; with the generator at its limit nothing is decided.

    `tried`: iterations that an open loop's schedule asks for; None in a closed loop. Dropped ones
    are misses: every user was waiting for the target.
    """
    asked = step.requests + step.dropped
    late = tried is not None and asked < _ENOUGH_STARTED * tried
    unseen = step.generator.limited is None and step.dropped > 0
    if step.generator.limited or not asked or late or unseen:
        return "inconclusive"
    if not started_enough(step):
        return "fail"
    if step.offered_rate and _leaves_a_queue(step, objectives):
        return "fail"
    success = (step.requests - step.failures) / asked
    latency = with_drops(step.latency_with_failures_seconds, step.requests, step.dropped)
    met = all(objective.holds(success, latency) for objective in objectives)
    return "pass" if met else "fail"


def started_enough(step: Step) -> bool:
    """Whether the offered rate was really begun; a closed loop offers none."""
    # Rounded: 98 % of a rate is rarely a number that binary has exactly.
    wanted = round(_ENOUGH_STARTED * (step.offered_rate or 0), 9)
    return (step.started_rate or 0) >= wanted


def _leaves_a_queue(step: Step, objectives: Sequence[Objective]) -> bool:
    limits = [objective.limit for objective in objectives if objective.key != "success"]
    return bool(limits) and step.drain_seconds > max(*limits, _SHORT_DRAIN_SECONDS)


def with_drops(latency: Latency, requests: int, dropped: int) -> dict[str, float | None]:
    """Percentiles over started and dropped together, a dropped one infinite (None).

    Only some percentiles are known: the next higher one stands for those between, which errs
    against the target.
    """
    values = latency.model_dump()
    if not dropped:
        return values
    shifted: dict[str, float | None] = {}
    for key, quantile in QUANTILES.items():
        rank = math.ceil(quantile * (requests + dropped))
        above = [k for k, q in QUANTILES.items() if rank <= q * requests]
        shifted[key] = values[above[0]] if above else None
    return shifted


def judge_run(valid: bool, steps: Sequence[Step]) -> Verdict:
    """Fail when any step fails, pass when all pass."""
    verdicts = {step.verdict for step in steps}
    if not valid or not verdicts:
        return "inconclusive"
    if "fail" in verdicts:
        return "fail"
    return "inconclusive" if "inconclusive" in verdicts else "pass"
