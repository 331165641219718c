"""A comparison that the lab runs itself: a plan's variants in turn, or identical arms (A/A)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spikelab import paths
from spikelab.comparison.looks import look_at
from spikelab.comparison.pairing import (
    PHASE,
    Arm,
    Place,
    arm_of_state,
    parse_place,
    primary_place,
    variants_of,
)
from spikelab.comparison.verdict import (
    METRICS,
    ComparisonQuestion,
    compare_arms,
    overall,
    with_noise,
)
from spikelab.console import say
from spikelab.errors import UsageError, did_you_mean
from spikelab.experiments import sweep
from spikelab.experiments.session import Experiment, ExperimentSession
from spikelab.plans.load import (
    changed,
    line_of,
    load_plan,
    mistake_at,
    plan_files,
    split_assignment,
)
from spikelab.plans.model import Plan
from spikelab.plans.parameters import LONGEST_NAME
from spikelab.plans.studies import CompareBy, Variant, combinations
from spikelab.results.comparison import ComparisonRecord, MetricName
from spikelab.results.experiment import ExperimentState
from spikelab.run import RunOptions
from spikelab.statistics.pairs import planned_looks, require_pairs
from spikelab.units import parse_fraction


@dataclass(frozen=True)
class QuestionOptions:
    """What the command line says; None, or empty: as the plan has it."""

    primary: str | None = None
    metrics: str | None = None
    margin: str | None = None
    at: Sequence[str] = ()
    looks: int | None = None
    interleaved: bool = False
    mixed_latency: bool = False

    def of(self, by: CompareBy | None) -> ComparisonQuestion:
        """The question of a plan with these changes. Raises UsageError naming the option."""
        question = ComparisonQuestion.of(by)
        if self.primary is not None:
            question = replace(question, primary=_metric("--primary", self.primary))
        if self.metrics is not None:
            names = [name.strip() for name in self.metrics.split(",") if name.strip()]
            question = replace(question, metrics=[_metric("--metrics", name) for name in names])
        if self.margin is not None:
            question = replace(question, margin=_margin(self.margin))
        if self.at:
            question = replace(
                question, at=parse_place(split_assignment(t, "--at") for t in self.at)
            )
        if self.looks is not None:
            question = replace(question, looks=self.looks)
        return replace(question, interleaved=self.interleaved, mixed_latency=self.mixed_latency)

    def of_runs(self, plan: str) -> ComparisonQuestion:
        """The question of finished runs: as the ready plan of that name declares it."""
        by = None
        if plan in plan_files():
            by = load_plan(plan).compare
        return replace(self.of(by), at_asked=bool(self.at))


def _metric(option: str, name: str) -> MetricName:
    if name not in METRICS:
        raise UsageError(f"{option} {name}: there is no such metric{did_you_mean(name, METRICS)}")
    return name


def _margin(text: str) -> float:
    try:
        margin = parse_fraction(text)
    except ValueError as error:
        raise UsageError(f"--margin: {error}") from error
    if not 0 < margin < 1:
        raise UsageError(f"--margin {text}: must be above 0 and below 1, such as 5% or 0.05")
    return margin


def choose_variants(plan: Plan, a: str | None, b: Sequence[str]) -> Plan:
    """The plan with only these variants, A first; as it is where none is named.

    Raises UsageError.
    """
    names = [variant.name for variant in plan.variants]
    for name in (*([a] if a else []), *b):
        if name not in names:
            cure = did_you_mean(name, names) if names else " (it has none)"
            raise UsageError(f"plan {plan.name} has no variant '{name}'{cure}")
    if len(names) < 2:
        raise UsageError(
            f"{paths.shown(plan.path)}: a comparison needs two variants; finished runs are "
            "compared with ./lab compare A B"
        )
    first = a or next((name for name in names if name not in b), None)
    if first is None:
        raise UsageError("--b: this names every variant: leave out the one that is A")
    chosen = [first, *(name for name in (b or names) if name != first)]
    if len(chosen) < 2:
        raise UsageError(f"--a {first} --b {first}: these are the same")
    variants = {variant.name: variant for variant in plan.variants}
    return plan if chosen == names else _with_variants(plan, [variants[name] for name in chosen])


# What the second one of identical arms is called, after the first.
_AGAIN = "-again"


def identical_arms(plan: Plan) -> Plan:
    """The plan for an A/A comparison: the first variant, or the plan as it is, against itself, with
    all that the comparison of A and B has: values, order, repeats and pauses."""
    first = plan.variants[0] if plan.variants else Variant(name="plan")
    again = first.model_copy(update={"name": first.name[: LONGEST_NAME - len(_AGAIN)] + _AGAIN})
    return _with_variants(plan, [first, again])


def _with_variants(plan: Plan, variants: Sequence[Variant]) -> Plan:
    keys: dict[str, Any] = {
        "variants": [each.model_dump(exclude_defaults=True) for each in variants]
    }
    if plan.sweep and plan.sweep.settings:
        # They are these variants by now.
        own = plan.sweep.model_dump(exclude={"settings"}, exclude_none=True)
        keys = {"sweep": own, **keys}
    return changed(plan, **keys)


def new_comparison(
    plan: Plan, options: RunOptions, question: ComparisonQuestion, *, fresh: bool | None = None
) -> Experiment:
    """A comparison's runs from the first on. `fresh`: whether the target is restarted before each,
    where the variants do not say it. Raises UsageError where they could not decide."""
    _require_enough(plan, "repeats", lambda: require_pairs(plan.repeats))
    _require_enough(plan, "compare.looks", lambda: planned_looks(plan.repeats, question.looks))
    _require_enough(plan, "sweep.order", lambda: _require_changing_order(plan))
    primary_place(_places(plan), question.at)
    # Looks on the way are at one question: another one is another experiment.
    asked = "" if question == ComparisonQuestion.of(plan.compare) else repr(question)
    return sweep.new_sweep(plan, options, "comparison", fresh=fresh, asked=asked)


def _require_enough(plan: Plan, key: str, check: Callable[[], object]) -> None:
    """Runs the check, whose UsageError then names the line of that key."""
    try:
        check()
    except UsageError as error:
        line, _ = line_of(plan.path, key.split("."))
        raise mistake_at(plan.path, line, str(error)) from error


def _require_changing_order(plan: Plan) -> None:
    if plan.sweep and plan.sweep.order == "as-written":
        raise UsageError(
            "order: as-written has A run before B in every pair, so a drift would count as a "
            "difference: take abba or blocks"
        )


def _places(plan: Plan) -> list[Place]:
    judged = [phase.name for phase in plan.phases if phase.judged]
    phases = [{PHASE: name} for name in judged] if len(judged) > 1 else [{}]
    return [{**values, **phase} for values in combinations(_swept(plan)) for phase in phases]


def _swept(plan: Plan) -> Mapping[str, Sequence[Any]]:
    return plan.sweep.values if plan.sweep else {}


def run_comparison(
    session: ExperimentSession, question: ComparisonQuestion, *, identical: bool = False
) -> list[ComparisonRecord]:
    """Runs what is left of a comparison, judges it and keeps the answer. `identical`: its arms are,
    and all runs are made, for they are about the noise.

    Raises LabError or RunInterruptedError.
    """
    if identical:
        sweep.run_cells(session)
        records = [compare_identical_arms(session.state, question)]
    else:
        records = _run_looks(session, question)
    session.state.answer = state_answer(records)
    sweep.end(session)
    return records


def _run_looks(session: ExperimentSession, question: ComparisonQuestion) -> list[ComparisonRecord]:
    """Runs up to each planned look, and no further than to the first that decides."""
    state, plan = session.state, session.experiment.plan
    planned = planned_looks(plan.repeats, question.looks)
    for number, pairs in enumerate(planned):
        sweep.run_cells(session, pairs)
        records = compare_variants(state, plan, question, planned, number)
        if pairs == plan.repeats or all(each.verdict != "inconclusive" for each in records):
            break
        say(f"look {number + 1} of {len(planned)}, after {pairs} pairs: no verdict yet")
    # What was not needed any more is no missing run.
    state.cells = [cell for cell in state.cells if cell.repeat <= pairs]
    return records


def compare_variants(
    state: ExperimentState,
    plan: Plan,
    question: ComparisonQuestion,
    planned: Sequence[int] = (),
    number: int = 0,
) -> list[ComparisonRecord]:
    """Each variant against the first. `planned`: the comparison's looks, of which this is number
    `number`, the first 0. Raises UsageError where a variant has no run with figures."""
    pairs = planned[number] if planned else plan.repeats
    names = [variant.name for variant in plan.variants]
    first, *others = (_up_to(arm_of_state(state, name), pairs) for name in names)
    return [
        compare_arms(first, other, question, look_at(first, other, question, planned, number))
        for other in others
    ]


def _up_to(arm: Arm, repeats: int) -> Arm:
    samples = tuple(sample for sample in arm.samples if sample.repeat <= repeats)
    return replace(arm, samples=samples)


def compare_identical_arms(
    state: ExperimentState, question: ComparisonQuestion
) -> ComparisonRecord:
    """The first two variants, which are the same: a comparison like any other, and its noise."""
    a, b = (arm_of_state(state, name) for name in variants_of(state.records()))
    return with_noise(compare_arms(a, b, question), question.looks)


def state_answer(records: Sequence[ComparisonRecord]) -> dict[str, Any]:
    """What the experiment's state says of its comparisons."""
    return {
        "comparisons": [record.comparison for record in records],
        "verdict": overall(records),
        "summaries": [record.summary for record in records],
    }
