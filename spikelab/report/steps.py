"""Judged steps as a report names them, sets them side by side and says what they missed.

Steps of several runs are either repeats of rates, and then curves over these, or stand each for
itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from spikelab.comparison.pairing import show_place
from spikelab.experiments.sweep import Rates, by_variant, only_rates_differ
from spikelab.judge import judge_objective, leaves_a_queue, show_started, started_enough
from spikelab.objectives import Objective, Verdict, parse_objective
from spikelab.results.run import RunRecord, Step
from spikelab.units import show_seconds, show_success


def name_of_step(record: RunRecord, step: Step) -> str:
    """What a step was run with: variant, values, and its own name where a run has several."""
    parts = [step.variant or "", show_place(record.values)]
    if len(record.steps) > 1 or (step.offered_rate is not None and not record.values):
        parts.append(step.name)
    return " ".join(filter(None, parts)) or step.name


def name_of_run(record: RunRecord) -> str:
    """What a whole run was made with: as `name_of_step`, without the names of several steps."""
    if len(record.steps) == 1:
        return name_of_step(record, record.steps[0])
    parts = [record.variant, show_place(record.values)]
    return " ".join(filter(None, parts)) or record.testid


@dataclass(frozen=True)
class Curves:
    """Steps by rate, of each variant, of each phase, or of both together: `of` says which, and is
    empty where there is one curve without a name."""

    of: str
    rates: Mapping[str, Rates]

    @property
    def several_rates(self) -> bool:
        return any(len(tried) > 1 for tried in self.rates.values())


def curves_of_variants(records: Sequence[RunRecord]) -> Curves:
    """Of runs that differ in nothing but their rates."""
    variants = by_variant(step for record in records for step in record.steps)
    return Curves("variant" if any(variants) else "", variants)


def curves(records: Sequence[RunRecord]) -> Curves | None:
    """None where runs differ in something else than rates and phases: they are no repeats, and
    stand each for itself."""
    if only_rates_differ(records):
        return curves_of_variants(records)
    found: dict[str, Rates] = {}
    named = False
    for phase, own in _by_phase(records).items():
        if not only_rates_differ(own):
            return None
        for variant, rates in by_variant(step for record in own for step in record.steps).items():
            named |= bool(variant)
            found[" ".join(filter(None, (variant, phase)))] = rates
    return Curves("variant and phase" if named else "phase", found) if found else None


def _by_phase(records: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    """The records as if each phase had been their only one."""
    return {
        phase: [
            record.model_copy(update={"steps": [s for s in record.steps if s.phase == phase]})
            for record in records
        ]
        for phase in dict.fromkeys(step.phase for record in records for step in record.steps)
    }


ObjectiveResult = Literal["met", "missed", "undecided"]
_RESULTS: dict[Verdict, ObjectiveResult] = {
    "pass": "met",
    "fail": "missed",
    "inconclusive": "undecided",
}
RATE_HELD = "rate held"


@dataclass(frozen=True)
class ObjectiveCheck:
    """One thing that a step had to do. `seen` says what it did."""

    name: str
    result: ObjectiveResult
    seen: str


def checks(step: Step) -> list[ObjectiveCheck]:
    """Of an open loop whether its rate was held, and every objective of the step."""
    objectives = [parse_objective(text) for text in step.slo]
    found = [_objective_check(step, each) for each in objectives]
    if step.offered_rate is None:
        return found
    # Of all that judging asks for only the queue is left, where nothing else was missed.
    queue = all(check.result != "missed" for check in found) or leaves_a_queue(step, objectives)
    return [_rate_held(step, queue), *found]


def _objective_check(step: Step, objective: Objective) -> ObjectiveCheck:
    latency = step.latency_with_failures_seconds.model_dump()
    success = step.success or 0.0
    if objective.text in step.misses:
        result = _RESULTS[judge_objective(step, objective)]
    else:
        # Of a report, or before schema 2: by the figure.
        result = "met" if objective.holds(success, latency) else "missed"
    value = success if objective.key == "success" else latency[objective.key]
    return ObjectiveCheck(objective.text, result, _seen(objective.key, value))


def missed(step: Step) -> list[str]:
    """What a step missed, such as ``p95 < 250ms: 1.2 s``."""
    return [f"{each.name}: {each.seen}" for each in checks(step) if each.result == "missed"]


def undecided(step: Step) -> str:
    """Why a step has no verdict."""
    # Before schema 2 a record did not say.
    return step.why or ("the driver was short of CPU" if step.generator.limited else "inconclusive")


def _seen(key: str, value: float | None) -> str:
    if key == "success":
        return show_success(value)
    return "failures reach it" if value is None else show_seconds(value)


def _rate_held(step: Step, queue: bool) -> ObjectiveCheck:
    if not started_enough(step):
        return ObjectiveCheck(RATE_HELD, "missed", f"only {show_started(step)}")
    if step.verdict == "fail" and queue:
        late = show_seconds(step.drain_seconds)
        return ObjectiveCheck(
            RATE_HELD, "missed", f"a queue was left: the last answer came {late} after it"
        )
    return ObjectiveCheck(RATE_HELD, "met", show_started(step))
