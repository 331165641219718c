"""A comparison that the lab runs itself: a plan's variants in turn, or identical arms (A/A)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spikelab import paths
from spikelab.comparison.pairing import PHASE, Arm, Place, arm_of_state, parse_place, primary_place
from spikelab.comparison.verdict import (
    METRICS,
    ComparisonQuestion,
    compare_arms,
    overall,
    with_noise,
)
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
from spikelab.plans.studies import CompareBy, combinations
from spikelab.results.comparison import ComparisonRecord, MetricName
from spikelab.results.experiment import ExperimentState
from spikelab.run import RunOptions
from spikelab.statistics.pairs import require_pairs
from spikelab.units import parse_fraction


@dataclass(frozen=True)
class QuestionOptions:
    """What the command line says; None, or empty: as the plan has it."""

    primary: str | None = None
    metrics: str | None = None
    margin: str | None = None
    at: Sequence[str] = ()

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
        return question

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
    return plan if chosen == names else _with_variants(plan, chosen)


def identical_arms(plan: Plan, question: ComparisonQuestion) -> Plan:
    """The plan for an A/A comparison: its first variant, if any, twice as often. Where values are
    swept, those of the place that decides.

    Raises UsageError for too few repeats, and where it is not said which place decides.
    """
    deciding = _deciding(plan, question)
    sweep_of_place = {"values": {name: [deciding[name]] for name in _swept(plan)}}
    # The statistics speak of pairs of one place; the plan's own question would ask for variants.
    return _with_variants(
        plan,
        [variant.name for variant in plan.variants[:1]],
        compare=None,
        sweep=sweep_of_place,
        repeats=2 * plan.repeats,
    )


def _with_variants(plan: Plan, names: Sequence[str], **keys: Any) -> Plan:
    variants = [plan.variant(name) for name in names]
    keys["variants"] = [each.model_dump(exclude_defaults=True) for each in variants if each]
    if plan.sweep and plan.sweep.settings:
        # They are these variants by now.
        own = plan.sweep.model_dump(exclude={"settings"}, exclude_none=True)
        keys = {"sweep": own, **keys}
    return changed(plan, **keys)


def new_comparison(plan: Plan, options: RunOptions, question: ComparisonQuestion) -> Experiment:
    """A comparison's runs from the first on. Raises UsageError where they could not decide."""
    _deciding(plan, question)
    return sweep.new_sweep(plan, options, "comparison")


def _deciding(plan: Plan, question: ComparisonQuestion) -> Place:
    """The place of the primary metric, where enough pairs are planned. Raises UsageError."""
    try:
        require_pairs(plan.repeats)
    except UsageError as error:
        line, _ = line_of(plan.path, ["repeats"])
        raise mistake_at(plan.path, line, str(error)) from error
    return primary_place(_places(plan), question.at)


def _places(plan: Plan) -> list[Place]:
    judged = [phase.name for phase in plan.phases if phase.judged]
    phases = [{PHASE: name} for name in judged] if len(judged) > 1 else [{}]
    return [{**values, **phase} for values in combinations(_swept(plan)) for phase in phases]


def _swept(plan: Plan) -> Mapping[str, Sequence[Any]]:
    return plan.sweep.values if plan.sweep else {}


def run_comparison(
    session: ExperimentSession, question: ComparisonQuestion, *, identical: bool = False
) -> list[ComparisonRecord]:
    """Runs what is left of a comparison, judges it and keeps the answer. `identical`: its arms are.

    Raises LabError or RunInterruptedError.
    """
    sweep.run_cells(session)
    if identical:
        records = [compare_identical_arms(session.state, question)]
    else:
        records = compare_variants(session.state, session.experiment.plan, question)
    session.state.answer = state_answer(records)
    sweep.end(session)
    return records


def compare_variants(
    state: ExperimentState, plan: Plan, question: ComparisonQuestion
) -> list[ComparisonRecord]:
    """Each variant against the first. Raises UsageError where one has no run with figures."""
    names = [variant.name for variant in plan.variants]
    first, *others = (arm_of_state(state, name) for name in names)
    return [compare_arms(first, other, question) for other in others]


def compare_identical_arms(
    state: ExperimentState, question: ComparisonQuestion
) -> ComparisonRecord:
    """Runs 1 and 2, 3 and 4 … of identical arms as pairs, every second one turned round."""
    arm = arm_of_state(state)
    a, b = (_half(arm, name, place) for place, name in enumerate("AB"))
    return with_noise(compare_arms(a, b, question))


def _half(arm: Arm, name: str, which: int) -> Arm:
    """A, B, B, A, …: a drift in a line weighs on both alike."""
    samples = [
        replace(sample, repeat=(sample.repeat + 1) // 2)
        for sample in arm.samples
        if (sample.repeat // 2 % 2) == which
    ]
    return replace(arm, name=f"{arm.name}:{name}", samples=tuple(samples))


def state_answer(records: Sequence[ComparisonRecord]) -> dict[str, Any]:
    """What the experiment's state says of its comparisons."""
    return {
        "comparisons": [record.comparison for record in records],
        "verdict": overall(records),
        "summaries": [record.summary for record in records],
    }
