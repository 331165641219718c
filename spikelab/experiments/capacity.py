"""A capacity search: the highest rate, or value of another parameter, that a target holds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spikelab import paths
from spikelab.console import say, warn
from spikelab.errors import LabError, UsageError
from spikelab.experiments import beginning, overload, session
from spikelab.experiments.capacity_answer import CapacityAnswer, CapacityStep, Miss
from spikelab.experiments.capacity_step import died, judged
from spikelab.experiments.limits import Limit, parse_limit
from spikelab.experiments.session import Session
from spikelab.experiments.state import CellState, ExperimentState, read_record
from spikelab.plans.load import PlanSource
from spikelab.plans.studies import CapacitySearch
from spikelab.plans.values import Scalar
from spikelab.record import RunRecord
from spikelab.run import RunOptions
from spikelab.runtime import Runtime
from spikelab.slo import Objective, parse_objective
from spikelab.statistics.capacity import Observation, answer, next_rate
from spikelab.units import show_seconds

# A run that turned out to be no measurement is repeated at once: so often at most.
_TRIES = 3
# A search ends long before: 13 steps are usual.
_MOST_STEPS = 60


@dataclass(frozen=True)
class Question:
    """What is searched, and what a step has to hold."""

    source: PlanSource
    search: CapacitySearch
    objectives: Sequence[Objective]
    limits: Sequence[Limit]

    @classmethod
    def of(
        cls, source: PlanSource, limits: Sequence[str] = (), slo: Sequence[str] = ()
    ) -> "Question":
        """From a plan: `limits` are added to its own, `slo` replaces its own. Raises UsageError."""
        source = overload.declared(_changed(source, limits, slo))
        plan, file = source.plan(), paths.shown(source.path)
        if plan.capacity is None:
            raise UsageError(f"{file}: the plan has no 'capacity': see plans/capacity.yaml")
        parsed = [parse_limit(text) for text in plan.capacity.limits]
        judged_phases = [phase for phase in plan.phases if phase.judged]
        if len(judged_phases) != 1:
            raise UsageError(f"{file}: a step has one judged phase; mark the others")
        objectives = plan.objectives_of(judged_phases[0])
        if not objectives and not parsed:
            raise UsageError(f"{file}: nothing to hold: add --slo 'p95 < 250ms'")
        if parsed and plan.foreign_urls:
            raise UsageError("--limit: the lab sees the resources of its own target alone")
        return cls(source, plan.capacity, objectives, parsed)

    def values(self, value: float) -> dict[str, Scalar]:
        """Of the cell that asks for this value."""
        return {self.search.parameter: int(value) if value == int(value) else value}

    def check(self, options: RunOptions) -> None:
        """Both ends of the search can be run on this machine. Raises UsageError."""
        ends = (self.search.lowest, self.search.highest)
        beginning.check(self.source, options, [CellState(values=self.values(v)) for v in ends])

    def warn_of_short_steps(self) -> None:
        """A queue grows by an overload's share of the step: a short one does not show it."""
        plan = self.source.plan()
        seconds = next(phase.duration_seconds for phase in plan.phases if phase.judged)
        limit = max((each.limit for each in self.objectives if each.key != "success"), default=0.0)
        precision = self.search.search().precision
        if limit > precision * seconds:
            warn(
                f"steps of {seconds:g} s are short for a limit of {show_seconds(limit)}: from an "
                f"overload of {limit / seconds:.0%} on the wait grows beyond it, and the answer is "
                f"as rough; take steps of {limit / precision:.0f} s or more"
            )


def _changed(source: PlanSource, limits: Sequence[str], slo: Sequence[str]) -> PlanSource:
    data: dict[str, Any] = dict(source.data)
    for option, texts, parse in (("--limit", limits, parse_limit), ("--slo", slo, parse_objective)):
        _parsed(option, texts, parse)
    if slo:
        data["slo"] = list(slo)
    if limits and data.get("capacity"):
        own = data["capacity"].get("limits") or []
        data["capacity"] = {**data["capacity"], "limits": [*own, *limits]}
    return replace(source, data=data)


def _parsed(option: str, texts: Sequence[str], parse: Callable[[str], object]) -> None:
    for text in texts:
        try:
            parse(text)
        except ValueError as error:
            raise UsageError(f"{option}: {error}") from error


def run(
    runtime: Runtime, question: Question, options: RunOptions, state: ExperimentState
) -> CapacityAnswer:
    """Searches on from the state's steps, then overloads the target where the plan asks for it.

    Returns the answer, which the state holds as well. Raises LabError or RunInterruptedError; the
    same command goes on from there.
    """
    with session.open_session(runtime, question.source, options, state) as going:
        steps = _search(question, going)
        found = _answer(question, steps)
        state.answer = found.model_dump(mode="json")
        if question.search.overload is None or not found.highest_pass:
            going.finish(state.answer)
            return found
    load = overload.Load.of(question.search.overload, found.highest_pass)
    with session.open_session(runtime, load.source(question.source), options, state) as going:
        found.overload = overload.run(going, load, question.objectives)
        going.finish(found.model_dump(mode="json"))
    return found


def _search(question: Question, going: Session) -> list[CapacityStep]:
    search = question.search.search()
    steps = known_steps(question, going.state)
    while len(steps) < _MOST_STEPS:
        value = next_rate(search, _observations(steps))
        if value is None:
            break
        say(f"step {len(steps) + 1}: {question.search.parameter} {value:,.6g}")
        record = _run_once(going, _next_cell(going.state, question.values(value)))
        steps.append(judged(record, value, question.objectives, question.limits))
        say(_line(steps[-1]))
    return steps


def known_steps(question: Question, state: ExperimentState) -> list[CapacityStep]:
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
        return read_record(cell.testid)
    records = (read_record(testid) for testid in cell.attempts)
    return next((record for record in records if record and died(record)), None)


def _next_cell(state: ExperimentState, values: dict[str, Scalar]) -> CellState:
    """The cell that was begun and not done, or one more."""
    same = [cell for cell in state.cells if cell.values == values]
    open_cell = next((cell for cell in same if _result(cell) is None), None)
    return open_cell or CellState(values=values, repeat=len(same) + 1)


def _run_once(going: Session, cell: CellState) -> RunRecord:
    """A run that measured something. Raises LabError after too many that did not."""
    for _ in range(_TRIES):
        record = going.run(cell)
        if record.valid or died(record):
            return record
        warn(f"no valid run: {'; '.join(record.reasons)}")
    raise LabError(f"no valid run in {_TRIES}: {'; '.join(record.reasons)}")


def _line(step: CapacityStep) -> str:
    text = f"{step.value:,.6g}: {step.verdict}"
    if step.latency_seconds.p95 is not None:
        text += f", p95 {show_seconds(step.latency_seconds.p95)}"
    return f"{text}; {step.why}" if step.why else text


def _answer(question: Question, steps: list[CapacityStep]) -> CapacityAnswer:
    found = answer(question.search.search(), _observations(steps))
    outcome, reason = found.outcome, found.reason
    if len(steps) >= _MOST_STEPS:
        outcome, reason = "inconclusive", f"no end after {_MOST_STEPS} steps"
    return CapacityAnswer(
        outcome=outcome,
        parameter=question.search.parameter,
        highest_pass=found.highest_pass,
        lowest_fail=found.lowest_fail,
        reason=reason,
        limited_by=_limited_by(steps, found.lowest_fail),
        steps=steps,
    )


def _limited_by(steps: Sequence[CapacityStep], lowest_fail: float | None) -> list[Miss]:
    """What most steps at the lowest failing value missed, the most frequent first."""
    missed = [m for step in steps if step.value == lowest_fail for m in step.missed]
    by_kind: dict[str, list[Miss]] = {}
    for each in missed:
        key = each.text if each.kind in ("objective", "resource") else each.kind
        by_kind.setdefault(key, []).append(each)
    return [group[0] for group in sorted(by_kind.values(), key=len, reverse=True)]


def _observations(steps: Sequence[CapacityStep]) -> list[Observation]:
    return [Observation(step.value, step.verdict) for step in steps]
