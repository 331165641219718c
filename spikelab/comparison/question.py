"""What is asked of a comparison: as a plan declares it, changed by the command line."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from spikelab.comparison.places import Place, parse
from spikelab.errors import UsageError, did_you_mean
from spikelab.plans.load import load_plan, plan_files, split_assignment
from spikelab.plans.studies import CompareBy, MetricName
from spikelab.units import parse_fraction

METRICS: tuple[MetricName, ...] = get_args(MetricName)


@dataclass(frozen=True)
class Question:
    """How A and B are compared. `margin`: 0.05 for 5 %; `at`: where the primary metric decides.
    `at_asked`: that is a must; else names that nothing was swept by say nothing."""

    primary: MetricName = "p95"
    metrics: Sequence[MetricName] = ()
    margin: float = 0.05
    at: Place = field(default_factory=dict)
    at_asked: bool = True

    @classmethod
    def of(cls, by: CompareBy | None) -> "Question":
        """As a plan declares it, or the defaults."""
        by = by or CompareBy()
        return cls(by.primary, by.metrics, parse_fraction(by.margin), by.at)

    @property
    def all_metrics(self) -> list[MetricName]:
        """The primary one first, each once."""
        return list(dict.fromkeys([self.primary, *self.metrics]))


@dataclass(frozen=True)
class Asked:
    """What the command line says; None, or empty: as the plan has it."""

    primary: str | None = None
    metrics: str | None = None
    margin: str | None = None
    at: Sequence[str] = ()

    def of(self, by: CompareBy | None) -> Question:
        """The question of a plan with these changes. Raises UsageError naming the option."""
        question = Question.of(by)
        if self.primary is not None:
            question = replace(question, primary=_metric("--primary", self.primary))
        if self.metrics is not None:
            names = [name.strip() for name in self.metrics.split(",") if name.strip()]
            question = replace(question, metrics=[_metric("--metrics", name) for name in names])
        if self.margin is not None:
            question = replace(question, margin=_margin(self.margin))
        if self.at:
            question = replace(question, at=parse(split_assignment(t, "--at") for t in self.at))
        return question

    def of_runs(self, plan: str) -> Question:
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
