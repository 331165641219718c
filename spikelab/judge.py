"""Verdicts. Three-valued: pass, fail, inconclusive. A run that the stack or the generator spoiled
is invalid and decides nothing.

Runs, sweeps and imports judge a step by its figures (`judge_step`): an objective holds or not. A
capacity search judges the same step by its counts (`judge_by_bounds`), which may be too few.
"""

import math
from collections.abc import Sequence

from spikelab.drivers.base import PhaseSummary
from spikelab.drivers.process import Use
from spikelab.objectives import QUANTILES, Objective, Verdict
from spikelab.plans.model import DriverName, Phase
from spikelab.results.run import Latency, Step
from spikelab.settings import locust_processes
from spikelab.statistics.shares import judge_share

# Above this share of the cores that it can use, the driver competes with itself: a late answer may
# be its own.
_LIMITED_SHARE_OF_CORES = 0.85
# Threads ready to run that have no core: more than half the machine's cores and twice what runs.
# docs/judging.md has the figures that this lies between.
_LIMITED_WAITING_PER_CPU = 0.5
_LIMITED_WAITING_PER_CORE_USED = 2.0
# A step that started less than this share of its offered rate cannot hold that rate.
_ENOUGH_STARTED = 0.98
# The same in a search for the rate that is held.
_ENOUGH_FOR_CAPACITY = 0.99
# One answer that is late is a straggler, not a queue.
_FEWEST_LATE = 2
# A drain that short is the last answers' own time.
_SHORT_DRAIN_SECONDS = 1.0


def generator_limited(use: Use | None, cpus: int, driver: DriverName) -> bool | None:
    """Whether the driver was short of CPU; None where it was not measured."""
    if use is None:
        return None
    # Each of Locust's processes runs on one core at a time.
    usable = min(locust_processes(), cpus) if driver == "locust" else cpus
    crowded = max(_LIMITED_WAITING_PER_CPU * cpus, _LIMITED_WAITING_PER_CORE_USED * use.cores)
    return use.waiting > crowded or use.cores > _LIMITED_SHARE_OF_CORES * usable


def spoiled(asked: Phase, happened: PhaseSummary, spike: bool) -> list[str]:
    """Why a phase is no valid measurement; empty when it is."""
    if spike and happened.requests < asked.value:
        return [f"{asked.name}: only {happened.requests:,} of {asked.value:,} users started"]
    if not happened.requests + happened.dropped:
        return [f"{asked.name}: nothing was requested"]
    return []


def judge_step(
    step: Step, objectives: Sequence[Objective], tried: int | None, end_rate: float | None = None
) -> Verdict:
    """A missed objective fails; with the generator at its limit nothing is decided.

    `tried`: iterations that an open loop's schedule asks for; None in a closed loop. Dropped ones
    are misses: every user was waiting for the target. `end_rate`: requests/s at the end of a ramp.
    """
    asked = step.requests + step.dropped
    late = tried is not None and asked < _ENOUGH_STARTED * tried
    unseen = step.generator.limited is None and step.dropped > 0
    if step.generator.limited or not asked or late or unseen:
        return "inconclusive"
    if not started_enough(step):
        return "fail"
    if step.offered_rate and leaves_a_queue(step, objectives, end_rate):
        return "fail"
    success = (step.requests - step.failures) / asked
    latency = with_drops(step.latency_with_failures_seconds, step.requests, step.dropped)
    met = all(objective.holds(success, latency) for objective in objectives)
    return "pass" if met else "fail"


def judge_by_bounds(step: Step, objectives: Sequence[Objective]) -> Verdict:
    """The verdict of a step of a capacity search, by exact bounds of the share of misses.

    The step has its verdict by `judge_step`, whose guards hold here as well. It must have started
    99 % of its rate (but for one request). Raises KeyError where the step has no count for a
    latency objective: a run of k6 or Locust has one for each objective of its phase.
    """
    if step.verdict == "inconclusive":
        return "inconclusive"
    short = short_of_capacity(step)
    if short:
        return short
    if step.offered_rate and leaves_a_queue(step, objectives):
        return "fail"
    verdicts = {objective_by_bounds(step, objective) for objective in objectives}
    if "fail" in verdicts:
        return "fail"
    return "inconclusive" if "inconclusive" in verdicts or not verdicts else "pass"


def objective_by_bounds(step: Step, objective: Objective) -> Verdict:
    """Of one objective alone, whatever else the step missed."""
    misses = step.failures + step.dropped
    if objective.key != "success":
        misses += step.slow[objective.text]
    return judge_share(misses, step.requests + step.dropped, objective.allowed_share)


def short_of_capacity(step: Step) -> Verdict | None:
    """Fail where the target kept the rate from being started, None where enough of it was."""
    if not step.offered_rate:
        return None
    if not step.started_rate:
        return "fail" if step.dropped else None
    due = step.offered_rate * step.requests / step.started_rate
    enough = round(_ENOUGH_FOR_CAPACITY * due, 9) - 1
    if step.requests >= enough:
        return None
    # Dropped, or Locust's users waited. Else k6 itself was a little behind.
    held_back = step.requests + step.dropped >= enough or not started_enough(step)
    return "fail" if held_back else "inconclusive"


def started_enough(step: Step) -> bool:
    """Whether the offered rate was really begun; a closed loop offers none."""
    # Rounded: 98 % of a rate is rarely a number that binary has exactly.
    wanted = round(_ENOUGH_STARTED * (step.offered_rate or 0), 9)
    return (step.started_rate or 0) >= wanted


def leaves_a_queue(
    step: Step, objectives: Sequence[Objective], end_rate: float | None = None
) -> bool:
    """Whether who came last found a queue longer than the loosest latency limit (and a second).

    Of the requests that were due in so much time before the end, more than the objective allows
    (with 95 % confidence) were then answered after as much time again.
    Without counts, as in an imported report, the last answer alone decides.
    """
    latency = [objective for objective in objectives if objective.key != "success"]
    if not latency:
        return False
    loosest = max(latency, key=lambda objective: objective.limit)
    spare = max(loosest.limit, _SHORT_DRAIN_SECONDS)
    if step.late_answers is None:
        return step.drain_seconds > spare
    if step.late_answers < _FEWEST_LATE:
        return False
    due = round((end_rate or step.started_rate or 0) * spare)
    last = max(step.late_answers, min(step.requests, due))
    return judge_share(step.late_answers, last, loosest.allowed_share) == "fail"


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
