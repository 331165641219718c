"""After a search: more load than the target holds, then half of what it holds, in one run."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from spikelab import signals
from spikelab.console import say
from spikelab.experiments.session import ExperimentSession
from spikelab.judge import judge_step, tightest
from spikelab.measure import died
from spikelab.objectives import QUANTILES, Objective
from spikelab.plans.load import changed
from spikelab.plans.model import Plan
from spikelab.plans.studies import Overload
from spikelab.results.experiment import CellState, OverloadAnswer, OverloadOutcome
from spikelab.results.run import RunRecord, Scalar, Step
from spikelab.series import Series, load_series
from spikelab.units import parse_duration

# Parameters of the plan that the overload's run sets, beside those of its own.
_RATE, _RECOVERY_RATE = "overload_rate", "recovery_rate"
_RECOVERY_SHARE = 0.5
# So much of the capacity as good answers is near it.
_NEAR_CAPACITY = 0.8
# So much of what cannot be held, when refused at once, is shed.
_SHED = 0.5
# The SLO is met again when it is met for so many seconds in a row.
_STEADY_SECONDS = 3
_LATENCIES = {
    "p50": signals.LATENCY_P50,
    "p90": signals.LATENCY_P90,
    "p95": signals.LATENCY_P95,
    "p99": signals.LATENCY_P99,
    "p99_9": signals.LATENCY_P99_9,
}


def declared(plan: Plan) -> Plan:
    """The plan with the parameters of an overload's run, where it asks for one."""
    if plan.capacity is None or plan.capacity.overload is None:
        return plan
    own = {name: {"about": "of the overload", "default": 1.0} for name in (_RATE, _RECOVERY_RATE)}
    parameters = {**(plan.source.data.get("parameters") or {}), **own}
    return changed(plan, dict.fromkeys(own, 1.0), parameters=parameters)


@dataclass(frozen=True)
class Load:
    """The run: `rate` is `factor` times `capacity`, all requests a second."""

    capacity: float
    factor: float
    duration: str
    recovery: str

    @classmethod
    def of(cls, asked: Overload, capacity: float) -> Self:
        return cls(capacity, asked.factor, asked.duration, asked.recovery)

    @property
    def rate(self) -> float:
        return round(self.factor * self.capacity, 1)

    @property
    def recovery_rate(self) -> float:
        return round(_RECOVERY_SHARE * self.capacity, 1)

    @property
    def values(self) -> dict[str, Scalar]:
        return {_RATE: self.rate, _RECOVERY_RATE: self.recovery_rate}

    def plan(self, plan: Plan) -> Plan:
        """A declared plan with the phases of this run: its warm-ups, the overload, the recovery."""
        phases: list[dict[str, Any]] = plan.source.data["phases"]
        before = [phase for phase in phases if phase.get("judged") is False]
        measured = next(phase for phase in phases if phase.get("judged") is not False)
        # As many users as can be on their way: who has none drops what a server would have to take.
        timeout = parse_duration(plan.request.timeout)
        seconds = min(timeout, parse_duration(self.duration)) + 1
        own = [
            ("overload", _RATE, self.duration, self.rate * seconds),
            ("recovery", _RECOVERY_RATE, self.recovery, self.rate * 1.0),
        ]
        after = [
            {
                **measured,
                "name": name,
                "value": f"${{{parameter}}}",
                "duration": duration,
                "most_users": math.ceil(users),
            }
            for name, parameter, duration, users in own
        ]
        # The recovery follows, wherever the judged phase began.
        after[-1]["start"] = None
        return changed(plan, phases=[*before, *after])


def run(session: ExperimentSession, asked: Load, objectives: Sequence[Objective]) -> OverloadAnswer:
    """Runs it, or takes the run that was done before. Raises LabError, RunInterruptedError."""
    begun = (cell for cell in session.state.cells if cell.values == asked.values)
    cell = next(begun, CellState(values=asked.values))
    before = RunRecord.read(cell.testid) if cell.testid else None
    if before is not None:
        return judged(before, asked, objectives)
    say(f"overload: {asked.rate:,.4g}/s for {asked.duration}, then {asked.recovery_rate:,.4g}/s")
    return judged(session.run_step(cell), asked, objectives)


def judged(record: RunRecord, asked: Load, objectives: Sequence[Objective]) -> OverloadAnswer:
    """What a run of this load shows."""
    found = OverloadAnswer(
        outcome="crashes",
        testid=record.testid,
        factor=asked.factor,
        rate=asked.rate,
        recovery_rate=asked.recovery_rate,
        watched_seconds=parse_duration(asked.recovery),
    )
    steps = {step.name: step for step in record.steps}
    over = steps.get("overload")
    if over is None:
        return found
    due = over.requests + over.dropped
    timed_out = over.errors.request_timeout + over.errors.dial_timeout + over.dropped
    found.goodput = over.goodput
    found.latency_seconds = over.latency_seconds
    found.timed_out_share = round(timed_out / due, 4)
    found.refused_share = round((over.failures + over.dropped - timed_out) / due, 4)
    if not died(record):
        over = _as_overload(over, objectives)
        found.outcome = _outcome(over, asked, found.refused_share)
        found.why = over.why if found.outcome == "inconclusive" else ""
    series = load_series(record.folder)
    if "recovery" in steps and series is not None:
        begun, until = steps["recovery"].started, parse_duration(asked.recovery)
        found.recovery_seconds = recovery_seconds(series, begun, until, objectives)
    return found


def _as_overload(over: Step, objectives: Sequence[Objective]) -> Step:
    """An overload makes answers slower as it goes: that alone leaves nothing undecided. Nor does a
    driver that was late, where half of the requests waited for longer than it explains."""
    if over.verdict != "inconclusive":
        return over
    limit, late, median = (
        tightest(objectives),
        over.lateness,
        over.latency_with_failures_seconds.p50,
    )
    if limit is not None and late is not None and (median is None or median > limit + late.max):
        late = None
    asked = over.model_copy(update={"rise": None, "lateness": late})
    found = judge_step(asked, objectives)
    asked.verdict, asked.why = found.verdict, found.why
    return asked


def _outcome(over: Step, asked: Load, refused_share: float) -> OverloadOutcome:
    if over.verdict == "pass":
        return "holds"
    if over.verdict == "inconclusive":
        return "inconclusive"
    too_much = 1 - 1 / asked.factor
    near = (over.goodput or 0.0) >= _NEAR_CAPACITY * asked.capacity
    return "sheds" if near and refused_share >= _SHED * too_much else "queues"


def recovery_seconds(
    series: Series, begun: datetime, seconds: float, objectives: Iterable[Objective]
) -> float | None:
    """From `begun` until the objectives are met again, for some seconds in a row; None where that
    was not seen within `seconds`. Latencies are those of the dashboards: response times (a script's
    own durations where it has none) by histogram."""
    wanted = list(objectives)
    offset = (begun - series.begun).total_seconds()
    places = [
        place for place, at in enumerate(series.seconds) if offset <= at <= offset + seconds - 1
    ]
    met = [all(_holds(series, place, each) for each in wanted) for place in places]
    steady = max(1, _STEADY_SECONDS // series.step_seconds)
    for first in range(len(met) - steady + 1):
        if all(met[first : first + steady]):
            return round(max(0.0, series.seconds[places[first]] - offset), 1)
    return None


def _holds(series: Series, place: int, objective: Objective) -> bool:
    good, failed, dropped = (
        series.of(signal)[place] or 0.0
        for signal in (signals.GOOD_RATE, signals.FAILURE_RATE, signals.DROPPED_RATE)
    )
    if not good:
        return False
    success = good / (good + failed + dropped)
    latency = {key: series.of(signal)[place] for key, signal in _LATENCIES.items()}
    # What failed was slower than any limit.
    enough = objective.key == "success" or success >= QUANTILES[objective.key]
    return enough and objective.holds(success, latency)
