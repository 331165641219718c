"""A capacity search: the highest rate, or value of another parameter, that a target holds.

The question says which parameter, within which ends, and what a step must hold; each step is a run,
judged by exact bounds of its counts and by what the target used.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spikelab import paths
from spikelab.console import say, warn
from spikelab.errors import UsageError
from spikelab.experiments import overload
from spikelab.experiments.session import Experiment, ExperimentSession
from spikelab.judge import Judgement, judge_step, late_seconds
from spikelab.measure import TARGET_DIED, died
from spikelab.objectives import (
    Limit,
    Objective,
    parse_limit,
    parse_objective,
)
from spikelab.plans.load import changed, plan_of
from spikelab.plans.model import Phase, Plan
from spikelab.plans.studies import CapacitySearch
from spikelab.results.experiment import (
    CapacityAnswer,
    CapacityStep,
    CellState,
    ExperimentState,
    Miss,
    unit_of,
)
from spikelab.results.run import RunRecord, Scalar, Step
from spikelab.run import RunOptions
from spikelab.stack.base import Runtime
from spikelab.statistics.search import Observation, Search, answer, counted, next_rate
from spikelab.units import show_seconds

# A search ends long before: 13 steps are usual.
_MOST_STEPS = 60
_COLD = "not counted: the target may still have been cold"


@dataclass(frozen=True)
class CapacityQuestion:
    """What is searched, and what a step has to hold. `whole`: only whole numbers are tried."""

    plan: Plan
    search: CapacitySearch
    whole: bool
    objectives: Sequence[Objective]
    limits: Sequence[Limit]

    @classmethod
    def of(
        cls, plan: Plan, limits: Sequence[str] = (), slo: Sequence[str] = ()
    ) -> "CapacityQuestion":
        """From a plan: `limits` are added to its own, `slo` replaces its own. Raises UsageError."""
        plan = overload.declared(_asked(plan, limits, slo))
        file = paths.shown(plan.path)
        if plan.capacity is None:
            raise UsageError(f"{file}: the plan has no 'capacity': see plans/capacity.yaml")
        parsed = [parse_limit(text) for text in plan.capacity.limits]
        judged_phases = [phase for phase in plan.phases if phase.judged]
        if len(judged_phases) != 1:
            raise UsageError(f"{file}: a step has one judged phase; mark the others")
        judged_phase = judged_phases[0]
        objectives = plan.objectives_of(judged_phase)
        if not objectives and not parsed:
            raise UsageError(f"{file}: nothing to hold: add --slo 'p95 < 250ms'")
        if parsed and plan.foreign_urls:
            raise UsageError("--limit: the lab sees the resources of its own target alone")
        users = judged_phase.kind == "users" and _is_load(plan, plan.capacity)
        whole = users or isinstance(plan.parameters[plan.capacity.parameter].default, int)
        return cls(plan, plan.capacity, whole, objectives, parsed)

    @property
    def course(self) -> Search:
        """How the values of its steps are chosen."""
        return self.search.search(self.whole)

    def next_value(self, steps: Sequence[CapacityStep]) -> float | None:
        """Of the step after these; None when the search is over."""
        return next_rate(self.course, observations(steps))

    def values(self, value: float) -> dict[str, Scalar]:
        """Of the cell that asks for this value."""
        return _values(self.search, value)

    def experiment(self, options: RunOptions) -> Experiment:
        """A new search, which has done no step."""
        return Experiment.new("capacity", self.plan, options)

    def check(self, options: RunOptions) -> None:
        """The search can begin and end on this machine, and the least overload could follow it.

        Raises UsageError.
        """
        values = (self.search.lowest, self.search.first, self.search.highest)
        self.experiment(options).check([CellState(values=self.values(v)) for v in values])
        if self.search.overload is None:
            return
        if not _is_load(self.plan, self.search):
            name = self.search.parameter
            raise UsageError(
                f"{paths.shown(self.plan.path)}: capacity.overload is so many times '{name}', "
                f"and the judged phase's value is not ${{{name}}}: leave it out"
            )
        load = overload.Load.of(self.search.overload, self.search.lowest)
        after = Experiment.new("capacity", load.plan(self.plan), options)
        after.check([CellState(values=load.values)])

    def warn_of_short_steps(self) -> None:
        """A queue grows by an overload's share of the step: a short one does not show it."""
        seconds = _judged(self.plan).duration_seconds
        limit = max((each.limit for each in self.objectives if each.key != "success"), default=0.0)
        precision = self.course.precision
        if limit > precision * seconds:
            warn(
                f"steps of {seconds:g} s are short for a limit of {show_seconds(limit)}: from an "
                f"overload of {limit / seconds:.0%} on the wait grows beyond it, and the answer is "
                f"as rough; take steps of {limit / precision:.0f} s or more"
            )


def search_capacity(
    experiment: Experiment, question: CapacityQuestion, runtime: Runtime
) -> CapacityAnswer:
    """Searches on from the state's steps, then overloads the target where the plan asks for it.

    Returns the answer, which the state holds as well. Raises LabError or RunInterruptedError; the
    same command goes on from there.
    """
    state = experiment.state
    with experiment.session(runtime) as session:
        found = answer_of(question, _search(question, session))
        state.answer = found.model_dump(mode="json")
        if question.search.overload is None or not found.highest_pass:
            session.finish(state.answer)
            return found
        # The answer stays, whatever comes of the overload.
        session.stop("the overload is still to come")
    load = overload.Load.of(question.search.overload, found.highest_pass)
    after = Experiment(load.plan(question.plan), experiment.options, state)
    with after.session(runtime) as session:
        found.overload = overload.run(session, load, question.objectives)
        session.finish(found.model_dump(mode="json"))
    return found


def _search(question: CapacityQuestion, session: ExperimentSession) -> list[CapacityStep]:
    state = session.state
    steps = known_steps(question, state)
    while len(steps) < _MOST_STEPS and (value := question.next_value(steps)) is not None:
        # One from before, by fewer steps, holds no more.
        state.answer = None
        say(f"step {len(steps) + 1}: {question.search.parameter} {value:,.6g}")
        record = session.run_step(_next_cell(state, question.values(value)))
        steps.append(judged(record, value, question.objectives, question.limits))
        say(_line(answer_of(question, steps).steps[-1]))
    return steps


def known_steps(question: CapacityQuestion, state: ExperimentState) -> list[CapacityStep]:
    """The steps that were done before, judged again from their records."""
    found = []
    for cell in state.cells:
        record = _result(cell)
        if record is not None and question.search.parameter in cell.values:
            value = float(cell.values[question.search.parameter])
            found.append(judged(record, value, question.objectives, question.limits))
    return found


def _result(cell: CellState) -> RunRecord | None:
    """A cell's valid run, or the one in which the target died."""
    if cell.testid is not None:
        return RunRecord.read(cell.testid)
    records = (RunRecord.read(testid) for testid in cell.attempts)
    return next((record for record in records if record and died(record)), None)


def _next_cell(state: ExperimentState, values: dict[str, Scalar]) -> CellState:
    """The cell that was begun and not done, or one more."""
    same = [cell for cell in state.cells if cell.values == values]
    open_cell = next((cell for cell in same if _result(cell) is None), None)
    return open_cell or CellState(values=values, repeat=len(same) + 1)


def _line(step: CapacityStep) -> str:
    text = f"{step.value:,.6g}: {step.verdict}"
    if step.latency_seconds.p95 is not None:
        text += f", p95 {show_seconds(step.latency_seconds.p95)}"
    return f"{text}; {step.why}" if step.why else text


def answer_of(question: CapacityQuestion, steps: list[CapacityStep]) -> CapacityAnswer:
    """What these steps say; inconclusive before the search is over."""
    unit = unit_of(question.search.parameter)
    judged_steps = observations(steps)
    found = answer(question.course, judged_steps, unit)
    cold = len(steps) - len(counted(judged_steps))
    outcome, reason = found.outcome, found.reason
    if len(steps) >= _MOST_STEPS and question.next_value(steps) is not None:
        outcome, reason = "inconclusive", f"no end after {_MOST_STEPS} steps"
    return CapacityAnswer(
        outcome=outcome,
        parameter=question.search.parameter,
        highest_pass=found.highest_pass,
        lowest_fail=found.lowest_fail,
        reason=reason,
        limited_by=_limited_by(steps[cold:], found.lowest_fail),
        steps=[*map(_not_counted, steps[:cold]), *steps[cold:]],
    )


def _not_counted(step: CapacityStep) -> CapacityStep:
    """The same, which says why it does not count."""
    return step.model_copy(update={"why": "; ".join(filter(None, (step.why, _COLD)))})


def _limited_by(steps: Sequence[CapacityStep], lowest_fail: float | None) -> list[Miss]:
    """What most steps at the lowest failing value missed, the most frequent first."""
    missed = [m for step in steps if step.value == lowest_fail for m in step.missed]
    by_kind: dict[str, list[Miss]] = {}
    for each in missed:
        key = each.text if each.kind in ("objective", "resource") else each.kind
        by_kind.setdefault(key, []).append(each)
    return [group[0] for group in sorted(by_kind.values(), key=len, reverse=True)]


def _judged(plan: Plan) -> Phase:
    return next(phase for phase in plan.phases if phase.judged)


def _is_load(plan: Plan, search: CapacitySearch) -> bool:
    """Whether the judged phase's value is the parameter itself."""
    ends = (search.lowest, search.highest)
    return all(_judged(plan_of(plan, _values(search, end))).value == end for end in ends)


def _values(search: CapacitySearch, value: float) -> dict[str, Scalar]:
    return {search.parameter: int(value) if value == int(value) else value}


def _asked(plan: Plan, limits: Sequence[str], slo: Sequence[str]) -> Plan:
    """The plan with what the command line asks a step to hold."""
    data, keys = plan.source.data, dict[str, Any]()
    for option, texts, parse in (("--limit", limits, parse_limit), ("--slo", slo, parse_objective)):
        _parsed(option, texts, parse)
    if slo:
        keys["slo"] = list(slo)
        phases: list[Mapping[str, Any]] = data["phases"]
        # In place of a phase's own as well.
        keys["phases"] = [{k: v for k, v in phase.items() if k != "slo"} for phase in phases]
    if limits and data.get("capacity"):
        own = data["capacity"].get("limits") or []
        keys["capacity"] = {**data["capacity"], "limits": [*own, *limits]}
    return changed(plan, **keys) if keys else plan


def _parsed(option: str, texts: Sequence[str], parse: Callable[[str], object]) -> None:
    for text in texts:
        try:
            parse(text)
        except ValueError as error:
            raise UsageError(f"{option}: {error}") from error


def observations(steps: Sequence[CapacityStep]) -> list[Observation]:
    return [Observation(step.value, step.verdict) for step in steps]


# Of what was started, but for one request.
_ANSWERED = 0.99


def judged(
    record: RunRecord, value: float, objectives: Sequence[Objective], limits: Sequence[Limit]
) -> CapacityStep:
    """A run's step, judged as the run was and by what the target used.

    `value`: of the parameter that is searched. A run in which the target died fails.
    """
    if died(record) or not record.steps:
        missed = [Miss(kind="death", text=TARGET_DIED)]
        return CapacityStep(
            testid=record.testid, value=value, verdict="fail", missed=missed, why=TARGET_DIED
        )
    step = record.steps[-1]
    judgement = _judgement(step, objectives, limits)
    return CapacityStep(
        testid=record.testid,
        value=value,
        verdict=judgement.verdict,
        missed=list(judgement.missed),
        why=judgement.why,
        started_rate=step.started_rate,
        achieved_rate=step.achieved_rate,
        success=None if step.success is None else round(step.success, 6),
        latency_seconds=step.latency_seconds,
        resources=step.resources,
    )


def _judgement(step: Step, objectives: Sequence[Objective], limits: Sequence[Limit]) -> Judgement:
    # Of schema 1, which has no figure of what its guards saw, and no reason.
    if step.verdict == "inconclusive" and not step.why:
        return Judgement("inconclusive", "the driver was the limit", by_driver=True)
    uncounted = [o.text for o in objectives if o.key != "success" and o.text not in step.slow]
    if uncounted:
        return Judgement("inconclusive", f"{', '.join(uncounted)}: slow answers not counted")
    found = judge_step(step, objectives)
    if found.by_driver:
        # Whatever was missed may be the driver's doing.
        return found
    missed = [*found.missed, *_used_too_much(step, limits)]
    if not objectives:
        missed += _unanswered(step)
    if missed:
        return Judgement("fail", ", ".join(miss.text for miss in missed), tuple(missed))
    unseen = next((limit for limit in limits if _holds(limit, step) is None), None)
    if unseen:
        return Judgement("inconclusive", f"{unseen.text}: the lab did not see how much was used")
    return found


def _used_too_much(step: Step, limits: Sequence[Limit]) -> list[Miss]:
    return [
        Miss(kind="resource", text=f"{limit.text} is missed")
        for limit in limits
        if _holds(limit, step) is False
    ]


def _holds(limit: Limit, step: Step) -> bool | None:
    return limit.holds(getattr(step.resources, limit.key))


def _unanswered(step: Step) -> list[Miss]:
    """Work that was not done in time, where no objective says how much may be."""
    if not step.offered_rate or not step.started_rate:
        return []
    seconds = step.requests / step.started_rate
    longer = seconds + late_seconds(step)
    # But for one request, as with those that were started.
    enough = round(_ANSWERED * step.requests * longer / seconds, 9) - 1
    if step.completed >= enough:
        return []
    text = f"{step.completed / longer:,.4g}/s were answered of {step.started_rate:,.4g}/s"
    return [Miss(kind="rate", text=text)]
