"""What a capacity search asks: of which parameter, within which ends, and what a step must hold."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spikelab import paths
from spikelab.console import warn
from spikelab.errors import UsageError
from spikelab.experiments import beginning, overload
from spikelab.experiments.capacity_answer import CapacityStep
from spikelab.experiments.limits import Limit, parse_limit
from spikelab.experiments.state import CellState
from spikelab.plans.load import PlanSource
from spikelab.plans.model import Plan
from spikelab.plans.phases import Phase
from spikelab.plans.studies import CapacitySearch
from spikelab.plans.values import Scalar
from spikelab.run import RunOptions
from spikelab.slo import Objective, parse_objective
from spikelab.statistics.capacity import Observation, Search, next_rate
from spikelab.units import show_seconds


@dataclass(frozen=True)
class Question:
    """What is searched, and what a step has to hold. `whole`: only whole numbers are tried."""

    source: PlanSource
    search: CapacitySearch
    whole: bool
    objectives: Sequence[Objective]
    limits: Sequence[Limit]

    @classmethod
    def of(
        cls, source: PlanSource, limits: Sequence[str] = (), slo: Sequence[str] = ()
    ) -> "Question":
        """From a plan: `limits` are added to its own, `slo` replaces its own. Raises UsageError."""
        # What is changed below is a plan: a mistake in it shows here.
        source.plan()
        source = overload.declared(_changed(source, limits, slo))
        plan, file = source.plan(), paths.shown(source.path)
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
        users = judged_phase.kind == "users" and _is_load(source, plan.capacity)
        whole = users or isinstance(plan.parameters[plan.capacity.parameter].default, int)
        return cls(source, plan.capacity, whole, objectives, parsed)

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

    def check(self, options: RunOptions) -> None:
        """The search can begin and end on this machine, and the least overload could follow it.

        Raises UsageError.
        """
        values = (self.search.lowest, self.search.first, self.search.highest)
        beginning.check(self.source, options, [CellState(values=self.values(v)) for v in values])
        if self.search.overload is None:
            return
        if not _is_load(self.source, self.search):
            name = self.search.parameter
            raise UsageError(
                f"{paths.shown(self.source.path)}: capacity.overload is so many times '{name}', "
                f"and the judged phase's value is not ${{{name}}}: leave it out"
            )
        load = overload.Load.of(self.search.overload, self.search.lowest)
        cells = [CellState(values=load.values)]
        beginning.check(load.source(self.source), options, cells)

    def warn_of_short_steps(self) -> None:
        """A queue grows by an overload's share of the step: a short one does not show it."""
        seconds = _judged(self.source.plan()).duration_seconds
        limit = max((each.limit for each in self.objectives if each.key != "success"), default=0.0)
        precision = self.course.precision
        if limit > precision * seconds:
            warn(
                f"steps of {seconds:g} s are short for a limit of {show_seconds(limit)}: from an "
                f"overload of {limit / seconds:.0%} on the wait grows beyond it, and the answer is "
                f"as rough; take steps of {limit / precision:.0f} s or more"
            )


def _judged(plan: Plan) -> Phase:
    return next(phase for phase in plan.phases if phase.judged)


def _is_load(source: PlanSource, search: CapacitySearch) -> bool:
    """Whether the judged phase's value is the parameter itself."""
    ends = (search.lowest, search.highest)
    return all(_judged(source.plan(_values(search, end))).value == end for end in ends)


def _values(search: CapacitySearch, value: float) -> dict[str, Scalar]:
    return {search.parameter: int(value) if value == int(value) else value}


def _changed(source: PlanSource, limits: Sequence[str], slo: Sequence[str]) -> PlanSource:
    data: dict[str, Any] = dict(source.data)
    for option, texts, parse in (("--limit", limits, parse_limit), ("--slo", slo, parse_objective)):
        _parsed(option, texts, parse)
    if slo:
        data["slo"] = list(slo)
        phases: list[Mapping[str, Any]] = data["phases"]
        # In place of a phase's own as well.
        data["phases"] = [{k: v for k, v in phase.items() if k != "slo"} for phase in phases]
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


def observations(steps: Sequence[CapacityStep]) -> list[Observation]:
    return [Observation(step.value, step.verdict) for step in steps]
