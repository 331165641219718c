"""Verdicts. Three-valued: pass, fail, inconclusive. A run that the stack or the generator spoiled
is invalid and decides nothing.

One function judges a step by its counts, whatever command ran it (`judge_step`). An imported
report has figures instead (`judge_report`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from spikelab.drivers.base import PhaseSummary
from spikelab.drivers.process import Use
from spikelab.objectives import Objective, Verdict
from spikelab.plans.model import DriverName, Phase
from spikelab.results.experiment import Miss
from spikelab.results.run import Step
from spikelab.settings import locust_processes
from spikelab.statistics.shares import judge_count, judge_share, requests_needed
from spikelab.units import show_rate, show_seconds

# Above this share of the cores that it can use, the driver competes with itself: a late answer may
# be its own.
_LIMITED_SHARE_OF_CORES = 0.85
# Threads ready to run that have no core: more than half the machine's cores and twice what runs.
# docs/judging.md has the figures that this lies between.
_LIMITED_WAITING_PER_CPU = 0.5
_LIMITED_WAITING_PER_CORE_USED = 2.0
# A step that started less than this share of its rate did not have it.
_ENOUGH = 0.98
# The count of a Poisson process varies by the root of its mean: so many of these.
_POISSON_DEVIATIONS = 3.0
# A driver may be late, at its 99th percentile, by this share of the tightest latency limit, but
# for what any machine at work is.
_LATE_SHARE_OF_LIMIT = 0.2
_LATE_SECONDS = 0.005
# A driver that was late for more than this share of a limit, were it once, may have made a backlog.
_BACKLOG_SHARE_OF_LIMIT = 0.5
# One answer that is late is a straggler, not a queue.
_FEWEST_LATE = 2
# A drain that short is the last answers' own time.
_SHORT_DRAIN_SECONDS = 1.0
# Without a latency limit, a wait of this share of the step at its end is a queue.
_QUEUE_SHARE = 0.01
# A rise of the mean response time by this share of the tightest limit matters; without a limit, by
# half of what it was.
_RISE_SHARE_OF_LIMIT = 0.1
_RISE_WITHOUT_LIMIT = 1.5


@dataclass(frozen=True)
class Judgement:
    """`why`: of a verdict that is not pass. `missed`: what a failed step missed. `by_driver`: it is
    inconclusive because of the driver, whatever the target did."""

    verdict: Verdict
    why: str = ""
    missed: tuple[Miss, ...] = ()
    by_driver: bool = False


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


def judge_step(step: Step, objectives: Sequence[Objective]) -> Judgement:
    """The verdict of a step of k6 or Locust, by its counts: docs/judging.md.

    Raises KeyError where the step has no count of slow answers for a latency objective: a run has
    one for each objective of its phase.
    """
    if not step.due:
        return Judgement("inconclusive", "nothing was requested")
    if doubt := _load_doubt(step, objectives):
        return Judgement("inconclusive", doubt, by_driver=True)
    if wrong := _wrong_answers(step, objectives):
        return _failed(wrong)
    if doubt := _cpu_doubt(step):
        return Judgement("inconclusive", doubt, by_driver=True)
    return _judge_target(step, objectives)


def _judge_target(step: Step, objectives: Sequence[Objective]) -> Judgement:
    """With a driver in order: what was missed first, then what cannot be decided."""
    if missed := missed_by(step, objectives):
        return _failed(missed)
    if unsure := [each for each in objectives if judge_objective(step, each) == "inconclusive"]:
        return Judgement("inconclusive", "; ".join(_unsure(step, each) for each in unsure))
    if rises(step, objectives):
        return Judgement("inconclusive", f"the response time {_rise(step)}")
    return Judgement("pass")


def misses(step: Step, objective: Objective) -> int:
    """Requests that missed it: failed, dropped, or slower than its limit."""
    slow = 0 if objective.key == "success" else step.slow[objective.text]
    return step.failures + step.dropped + slow


def judge_objective(step: Step, objective: Objective) -> Verdict:
    """Of one objective alone, whatever else the step missed."""
    missed, allowed = misses(step, objective), objective.allowed_share
    if step.spike:
        return judge_count(missed, step.due, allowed, objective.below)
    dependence = step.dependence.get(objective.text, 1.0)
    verdict = judge_share(missed, step.due, allowed, dependence)
    return "inconclusive" if verdict == "fail" and _late_by_driver(step, objective) else verdict


def missed_by(step: Step, objectives: Sequence[Objective]) -> list[Miss]:
    """What the target missed: objectives, the rate, or it left a queue."""
    missed = [
        Miss(kind="objective", text=f"{each.text} is missed")
        for each in objectives
        if judge_objective(step, each) == "fail"
    ]
    if step.offered_rate is None:
        return missed
    if not started_enough(step):
        missed.append(Miss(kind="rate", text=show_started(step)))
    if leaves_a_queue(step, objectives):
        after = show_seconds(step.drain_seconds)
        text = f"a queue was left: its last answer came {after} after the end"
        missed.append(Miss(kind="queue", text=text))
    return missed


def _load_doubt(step: Step, objectives: Sequence[Objective]) -> str:
    """Why the load was not the plan's, by the driver's own doing; empty where it was."""
    if (planned := _planned(step)) is not None and step.due < _enough(planned, step):
        return f"the driver was behind its schedule: {show_started(step)}"
    limit = tightest(objectives)
    if step.spike or step.lateness is None or limit is None:
        return ""
    if step.lateness.p99 <= max(_LATE_SHARE_OF_LIMIT * limit, _LATE_SECONDS):
        return ""
    return (
        f"the driver was {show_seconds(step.lateness.p99)} late at p99, "
        f"too much for a limit of {show_seconds(limit)}"
    )


def _wrong_answers(step: Step, objectives: Sequence[Objective]) -> list[Miss]:
    """What is missed by answers of a wrong status alone: a driver that is short of CPU makes
    answers late, and none wrong."""
    if step.spike or step.lateness is None:
        return []
    wrong = step.errors.http_4xx + step.errors.http_5xx
    return [
        Miss(kind="objective", text=f"{each.text} is missed")
        for each in objectives
        if judge_share(
            wrong, step.due, each.allowed_share, max(step.dependence.values(), default=1)
        )
        == "fail"
    ]


def driver_doubt(step: Step, objectives: Sequence[Objective]) -> str:
    """Why the step's figures may be the driver's own doing; empty where they are not."""
    return _load_doubt(step, objectives) or _cpu_doubt(step)


def _cpu_doubt(step: Step) -> str:
    if step.generator.limited:
        return "the driver was short of CPU"
    if step.generator.limited is None and step.lateness is None and step.dropped:
        return "requests were dropped, and nobody saw how the driver was doing"
    return ""


def _failed(missed: Sequence[Miss]) -> Judgement:
    return Judgement("fail", ", ".join(each.text for each in missed), tuple(missed))


def _late_by_driver(step: Step, objective: Objective) -> bool:
    """Whether slow answers may be the driver's doing: behind one queue, requests that begin late by
    no more than so much are answered late by no more."""
    if objective.key == "success" or step.lateness is None:
        return False
    late = step.lateness.max
    if late <= _BACKLOG_SHARE_OF_LIMIT * objective.limit:
        return False
    waited: float | None = getattr(step.latency_with_failures_seconds, objective.key)
    # None: so many failed that it is infinite.
    return waited is not None and waited <= objective.limit + late


def _unsure(step: Step, objective: Objective) -> str:
    missed, dependence = misses(step, objective), step.dependence.get(objective.text, 1.0)
    if judge_share(missed, step.due, objective.allowed_share, dependence) != "inconclusive":
        late = show_seconds(step.lateness.max if step.lateness else None)
        return f"the driver was up to {late} late, which decides {objective.text}"
    if not objective.allowed_share:
        return f"no number of requests shows {objective.text}: ask for a share below 100 %"
    needed = requests_needed(missed, step.due, objective.allowed_share, dependence)
    text = f"too few requests to decide {objective.text}: {missed:,} of {step.due:,} missed it"
    return text if needed is None else f"{text}, {needed:,} needed"


def tightest(objectives: Sequence[Objective]) -> float | None:
    """The lowest latency limit, in seconds."""
    return min((each.limit for each in objectives if each.key != "success"), default=None)


def rises(step: Step, objectives: Sequence[Objective]) -> bool:
    """Whether the response time rose within the step by as much as matters for the objectives. A
    ramp's does so by itself."""
    if step.rise is None or step.spike or step.end_rate is not None:
        return False
    limit = tightest(objectives)
    if limit is None:
        return step.rise.last_seconds > _RISE_WITHOUT_LIMIT * step.rise.first_seconds
    return step.rise.last_seconds - step.rise.first_seconds > _RISE_SHARE_OF_LIMIT * limit


def _rise(step: Step) -> str:
    assert step.rise is not None
    first, last = show_seconds(step.rise.first_seconds), show_seconds(step.rise.last_seconds)
    return f"rises within the step, from {first} to {last}"


def _planned(step: Step) -> float | None:
    """How many requests the driver's own schedule begins, whatever the target does."""
    if step.scheduled is not None or step.arrival == "constant":
        return step.scheduled
    return _due(step)


def _due(step: Step) -> float | None:
    """How many its rate asks for in the window; None without a rate or a window."""
    if not step.offered_rate or not step.started_rate:
        return None
    return step.offered_rate * step.requests / step.started_rate


def started_enough(step: Step) -> bool:
    """Whether the offered rate was really begun; a closed loop offers none."""
    if not step.offered_rate:
        return True
    due = step.scheduled or _due(step)
    return due is not None and step.requests >= _enough(due, step)


def _enough(due: float, step: Step) -> float:
    # Rounded: 98 % of a rate is rarely a number that binary has exactly. Of fewer than 50 requests
    # one is more than 2 %, and may be that of a moment at the phase's end.
    enough = min(round(_ENOUGH * due, 6), due - 1)
    if step.arrival == "poisson" and step.scheduled is None:
        enough -= _POISSON_DEVIATIONS * math.sqrt(due)
    return enough


def show_started(step: Step) -> str:
    """How much of its rate an open loop began."""
    return f"{show_rate(step.started_rate)} of {show_rate(step.offered_rate)}/s started"


def leaves_a_queue(step: Step, objectives: Sequence[Objective]) -> bool:
    """Whether who came last found a queue longer than the loosest latency limit (and a second).

    Of the requests that were due in so much time before the end, more than the objective allows
    (with 95 % confidence) were then answered after as much time again. Without a latency objective
    nobody says what is late: a queue is then what rises until the end and goes on after it.
    """
    latency = [objective for objective in objectives if objective.key != "success"]
    if not latency:
        return rises(step, objectives) and late_seconds(step) > _QUEUE_SHARE * step.seconds
    if step.late_answers is None or step.late_answers < _FEWEST_LATE:
        return False
    # Of one limit the stricter percentile.
    loosest = max(latency, key=lambda each: (each.limit, -each.allowed_share))
    spare = max(loosest.limit, _SHORT_DRAIN_SECONDS)
    last = max(step.late_answers, round(_due_at_the_end(step, spare)))
    return judge_share(step.late_answers, last, loosest.allowed_share) == "fail"


def _due_at_the_end(step: Step, seconds: float) -> float:
    """How many of its requests were due in so many seconds before the end."""
    if not step.started_rate:
        return 0.0
    window = step.requests / step.started_rate
    seconds = min(seconds, window)
    end = step.started_rate if step.end_rate is None else step.end_rate
    # A ramp's rate changes evenly: to its end it is as far from its mean as at its beginning.
    return seconds * (end + (step.started_rate - end) * seconds / window)


def late_seconds(step: Step) -> float:
    """By how much its last answers came later than is usual."""
    # A queue that grows makes many slower than the median, a straggler does not.
    end = min(step.drain_seconds, step.latency_seconds.p95 or 0.0)
    return max(0.0, end - (step.latency_seconds.p50 or 0.0))


def judge_report(step: Step, objectives: Sequence[Objective]) -> Judgement:
    """The verdict of a report of another tool, by what it prints: an objective holds or not, the
    rate was started, and the last answer came in time."""
    if not step.due:
        return Judgement("inconclusive", "nothing was requested")
    if doubt := driver_doubt(step, objectives):
        return Judgement("inconclusive", doubt, by_driver=True)
    missed = [
        Miss(kind="objective", text=f"{each.text} is missed")
        for each in objectives
        if not each.holds(step.success or 0.0, step.latency_with_failures_seconds.model_dump())
    ]
    if not started_enough(step):
        missed.append(Miss(kind="rate", text=show_started(step)))
    limits = [each.limit for each in objectives if each.key != "success"]
    spare = max([*limits, _SHORT_DRAIN_SECONDS])
    if step.offered_rate and limits and step.drain_seconds > spare:
        after = show_seconds(step.drain_seconds)
        text = f"a queue was left: its last answer came {after} after the end"
        missed.append(Miss(kind="queue", text=text))
    return _failed(missed) if missed else Judgement("pass")


def judge_run(valid: bool, steps: Sequence[Step]) -> Verdict:
    """Fail when any step fails, pass when all pass."""
    verdicts = {step.verdict for step in steps}
    if not valid or not verdicts:
        return "inconclusive"
    if "fail" in verdicts:
        return "fail"
    return "inconclusive" if "inconclusive" in verdicts else "pass"
