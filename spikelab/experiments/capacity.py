"""A capacity search: the highest rate, or value of another parameter, that a target holds."""

from collections.abc import Sequence

from spikelab.console import say, warn
from spikelab.errors import LabError
from spikelab.experiments import overload, session
from spikelab.experiments.capacity_answer import CapacityAnswer, CapacityStep, Miss, unit_of
from spikelab.experiments.capacity_question import Question, observations
from spikelab.experiments.capacity_step import died, judged
from spikelab.experiments.session import Session
from spikelab.experiments.state import CellState, ExperimentState
from spikelab.plans.values import Scalar
from spikelab.record import RunRecord, read_record
from spikelab.run import RunOptions
from spikelab.runtime import Runtime
from spikelab.statistics.capacity import answer, counted
from spikelab.units import show_seconds

# A run that turned out to be no measurement is repeated at once: so often at most.
_TRIES = 3
# A search ends long before: 13 steps are usual.
_MOST_STEPS = 60
_COLD = "not counted: the target may still have been cold"


def run(
    runtime: Runtime, question: Question, options: RunOptions, state: ExperimentState
) -> CapacityAnswer:
    """Searches on from the state's steps, then overloads the target where the plan asks for it.

    Returns the answer, which the state holds as well. Raises LabError or RunInterruptedError; the
    same command goes on from there.
    """
    with session.open_session(runtime, question.source, options, state) as going:
        found = answer_of(question, _search(question, going))
        state.answer = found.model_dump(mode="json")
        if question.search.overload is None or not found.highest_pass:
            going.finish(state.answer)
            return found
        # The answer stays, whatever comes of the overload.
        going.stop("the overload is still to come")
    load = overload.Load.of(question.search.overload, found.highest_pass)
    with session.open_session(runtime, load.source(question.source), options, state) as going:
        found.overload = overload.run(going, load, question.objectives)
        going.finish(found.model_dump(mode="json"))
    return found


def _search(question: Question, going: Session) -> list[CapacityStep]:
    steps = known_steps(question, going.state)
    while len(steps) < _MOST_STEPS and (value := question.next_value(steps)) is not None:
        # One from before, by fewer steps, holds no more.
        going.state.answer = None
        say(f"step {len(steps) + 1}: {question.search.parameter} {value:,.6g}")
        record = _run_once(going, _next_cell(going.state, question.values(value)))
        steps.append(judged(record, value, question.objectives, question.limits))
        say(_line(answer_of(question, steps).steps[-1]))
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


def answer_of(question: Question, steps: list[CapacityStep]) -> CapacityAnswer:
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
