"""The runs of a comparison: a plan's variants in turn, or identical arms."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from spikelab import paths
from spikelab.comparison import noise, sources
from spikelab.comparison.answer import compare, overall
from spikelab.comparison.arms import Arm
from spikelab.comparison.model import ComparisonRecord
from spikelab.comparison.places import PHASE, Place, primary_place
from spikelab.comparison.question import Question
from spikelab.errors import UsageError, did_you_mean
from spikelab.experiments import sweep
from spikelab.experiments.state import ExperimentState
from spikelab.plans.file import line_of, mistake_at
from spikelab.plans.load import PlanSource
from spikelab.plans.model import Plan
from spikelab.run import RunOptions
from spikelab.statistics.comparison import require_pairs


def sides(source: PlanSource, a: str | None, b: Sequence[str]) -> PlanSource:
    """The plan with only these variants, A first; as it is where none is named.

    Raises UsageError.
    """
    plan = source.plan()
    names = [variant.name for variant in plan.variants]
    for name in (*([a] if a else []), *b):
        if name not in names:
            cure = did_you_mean(name, names) if names else " (it has none)"
            raise UsageError(f"plan {plan.name} has no variant '{name}'{cure}")
    if len(names) < 2:
        raise UsageError(
            f"{paths.shown(source.path)}: a comparison needs two variants; finished runs are "
            "compared with ./lab compare A B"
        )
    first = a or next((name for name in names if name not in b), None)
    if first is None:
        raise UsageError("--b: this names every variant: leave out the one that is A")
    chosen = [first, *(name for name in (b or names) if name != first)]
    if len(chosen) < 2:
        raise UsageError(f"--a {first} --b {first}: these are the same")
    return source if chosen == names else _with_variants(source, plan, chosen)


def identical(source: PlanSource, question: Question) -> PlanSource:
    """The plan for an A/A comparison: its first variant, if any, twice as often. Where values are
    swept, those of the place that decides.

    Raises UsageError for too few repeats, and where it is not said which place decides.
    """
    plan = source.plan()
    deciding = _deciding(source, question)
    made = _with_variants(source, plan, [variant.name for variant in plan.variants[:1]])
    # The statistics speak of pairs of one place; the plan's own question would ask for variants.
    data = {key: value for key, value in made.data.items() if key != "compare"}
    data["sweep"] = {"values": {name: [deciding[name]] for name in _swept(plan)}}
    return replace(made, data={**data, "repeats": 2 * plan.repeats})


def _with_variants(source: PlanSource, plan: Plan, names: Sequence[str]) -> PlanSource:
    by_name = {variant.name: variant for variant in plan.variants}
    data: dict[str, Any] = dict(source.data)
    data["variants"] = [by_name[name].model_dump(exclude_defaults=True) for name in names]
    if plan.sweep and plan.sweep.settings:
        # They are these variants by now.
        data["sweep"] = plan.sweep.model_dump(exclude={"settings"}, exclude_none=True)
    return replace(source, data=data)


def new_state(source: PlanSource, options: RunOptions, question: Question) -> ExperimentState:
    """A comparison's runs from the first on. Raises UsageError where they could not decide."""
    _deciding(source, question)
    return sweep.new_state(source, options, "comparison")


def _deciding(source: PlanSource, question: Question) -> Place:
    """The place of the primary metric, where enough pairs are planned. Raises UsageError."""
    plan = source.plan()
    try:
        require_pairs(plan.repeats)
    except UsageError as error:
        line, _ = line_of(source.path, ["repeats"])
        raise mistake_at(source.path, line, str(error)) from error
    return primary_place(_places(plan), question.at)


def _places(plan: Plan) -> list[Place]:
    swept = _swept(plan)
    judged = [phase.name for phase in plan.phases if phase.judged]
    phases = [{PHASE: name} for name in judged] if len(judged) > 1 else [{}]
    return [
        {**dict(zip(swept, chosen, strict=True)), **phase}
        for chosen in product(*swept.values())
        for phase in phases
    ]


def _swept(plan: Plan) -> Mapping[str, Sequence[Any]]:
    return plan.sweep.values if plan.sweep else {}


def answer(
    state: ExperimentState, source: PlanSource, question: Question
) -> list[ComparisonRecord]:
    """Each variant against the first. Raises UsageError where one has no run with figures."""
    names = [variant.name for variant in source.plan().variants]
    first, *others = (sources.arm_of_state(state, name) for name in names)
    return [compare(first, other, question) for other in others]


def noise_answer(state: ExperimentState, question: Question) -> ComparisonRecord:
    """Runs 1 and 2, 3 and 4 … of identical arms as pairs, every second one turned round."""
    arm = sources.arm_of_state(state)
    a, b = (_half(arm, name, place) for place, name in enumerate("AB"))
    return noise.with_noise(compare(a, b, question))


def _half(arm: Arm, name: str, which: int) -> Arm:
    """A, B, B, A, …: a drift in a line weighs on both alike."""
    samples = [
        replace(sample, repeat=(sample.repeat + 1) // 2)
        for sample in arm.samples
        if (sample.repeat // 2 % 2) == which
    ]
    return replace(arm, name=f"{arm.name}:{name}", samples=tuple(samples))


def kept_answer(records: Sequence[ComparisonRecord]) -> dict[str, Any]:
    """What the experiment's state says of its comparisons."""
    return {
        "comparisons": [record.comparison for record in records],
        "verdict": overall(records),
        "summaries": [record.summary for record in records],
    }
