"""A sweep: values, variants and repeats, each a run, in an order that a drift does not favour."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from spikelab import paths
from spikelab.console import say, warn
from spikelab.errors import UsageError, did_you_mean
from spikelab.experiments import beginning
from spikelab.experiments.cell_plans import plan_of, variant_of
from spikelab.experiments.cells import cell_name
from spikelab.experiments.estimate import TimeLeft
from spikelab.experiments.order import Order, cells_in_order, draw_seed
from spikelab.experiments.session import Session
from spikelab.experiments.state import CellState, ExperimentState, Kind
from spikelab.held_rates import HeldRates, by_variant, held_rates
from spikelab.plans.estimate import run_estimate
from spikelab.plans.load import PlanSource, parameter_value, split_assignment
from spikelab.plans.studies import Sweep
from spikelab.plans.values import Scalar
from spikelab.record import RunRecord
from spikelab.run import RunOptions
from spikelab.units import show_duration, show_seconds

# A run that turned out to be no measurement is repeated at once: so often at most.
_TRIES = 3


class SweepAnswer(BaseModel):
    """What the steps of a sweep over rates say, by variant; empty where rates are not all that
    differs."""

    model_config = ConfigDict(extra="forbid")

    variants: dict[str, HeldRates] = Field(default_factory=dict)


@dataclass(frozen=True)
class Changes:
    """What the command line changes in a plan's sweep; None leaves it as it is."""

    values: Sequence[str] = ()
    repeats: int | None = None
    order: Order | None = None
    seed: int | None = None

    def applied(self, source: PlanSource) -> PlanSource:
        """The plan with these. Raises UsageError."""
        # As it stands in the file it has to be right, too: what follows builds on it.
        plan = source.plan()
        sweep: dict[str, Any] = dict(source.data.get("sweep") or {})
        asked = {
            key: _values(source, key, text)
            for key, text in (split_assignment(each, "--values") for each in self.values)
        }
        if asked:
            sweep["values"] = {**(plan.sweep.values if plan.sweep else {}), **asked}
        if self.order is not None:
            sweep["order"] = self.order
        if self.seed is not None:
            sweep["seed"] = self.seed
        data = dict(source.data)
        if sweep:
            data["sweep"] = sweep
        if self.repeats is not None:
            data["repeats"] = self.repeats
        return replace(source, data=data)


def _values(source: PlanSource, key: str, text: str) -> list[Scalar]:
    parameters = source.plan().parameters
    if key not in parameters:
        cure = did_you_mean(key, parameters) if parameters else " (the plan has none)"
        raise UsageError(f"--values {key}={text}: '{key}' is no parameter of the plan{cure}")
    return [
        parameter_value("--values", key, each.strip(), parameters[key]) for each in text.split(",")
    ]


def new_state(source: PlanSource, options: RunOptions, kind: Kind = "sweep") -> ExperimentState:
    """A sweep from its first run on. Raises UsageError when the plan has nothing to sweep."""
    plan = source.plan()
    if plan.sweep is None and not plan.variants and plan.repeats == 1:
        raise UsageError(
            f"{paths.shown(source.path)}: nothing to sweep: add --values rate=200,400 or --repeats "
            "3, or give the plan a sweep or variants"
        )
    sweep = plan.sweep or Sweep()
    for name in options.target_settings:
        if name in sweep.settings:
            raise UsageError(f"--target-set {name}: the sweep gives it its values")
    seed = draw_seed() if sweep.seed is None else sweep.seed
    names = [variant.name for variant in plan.variants]
    cells = cells_in_order(sweep.values, names, plan.repeats, sweep.order, seed)
    # Of the orders only blocks depend on it.
    kept = seed if sweep.order == "blocks" else None
    return beginning.begin(kind, source, options, cells, seed=kept, order=sweep.order)


def planned(source: PlanSource, state: ExperimentState) -> list[float]:
    """How long each cell's run is planned, in seconds."""
    base = source.plan()
    known: dict[str, float] = {}
    for cell in state.cells:
        name = cell_name(cell.values, cell.variant, 0)
        if name not in known:
            plan = plan_of(source, base, cell)
            known[name] = run_estimate(plan, variant_of(base, cell.variant)).seconds
    return [known[cell_name(cell.values, cell.variant, 0)] for cell in state.cells]


def run(going: Session, seconds: Sequence[float]) -> None:
    """Runs what is left of a sweep and keeps its answer.

    `seconds`: of `planned`. Raises LabError or RunInterruptedError.
    """
    run_cells(going, seconds)
    going.state.answer = answer(list(going.state.records())).model_dump(mode="json")
    end(going)


def run_cells(going: Session, seconds: Sequence[float]) -> None:
    """Runs every cell that is not done; one that has no valid run is passed over in the end.

    `seconds`: of `planned`. Raises LabError or RunInterruptedError.
    """
    cells = going.state.cells
    left = TimeLeft()
    for place, cell in enumerate(cells):
        if cell.done:
            continue
        name = cell_name(cell.values, cell.variant, cell.repeat)
        rest = [
            s for other, s in zip(cells[place:], seconds[place:], strict=True) if not other.done
        ]
        wait = show_duration(left.seconds(rest))
        say(f"run {place + 1} of {len(cells)}: {name}, about {wait} left")
        for attempt in range(1, _TRIES + 1):
            began = monotonic()
            record = going.run(cell)
            left.took(seconds[place], monotonic() - began)
            if record.valid:
                say(f"{name}: {_summary(record)}")
                break
            again = "once more" if attempt < _TRIES else "going on without it"
            warn(f"{name}: no valid run ({'; '.join(record.reasons)}): {again}")


def _summary(record: RunRecord) -> str:
    requests = sum(step.requests for step in record.steps)
    failures = sum(step.failures for step in record.steps)
    text = f"{record.verdict}, {requests:,} requests, {failures:,} failed"
    if record.steps:
        text += f", p95 {show_seconds(record.steps[-1].latency_seconds.p95)}"
    return text


def end(going: Session) -> None:
    """Finished when every cell has a valid run, else stopped; the answer is the state's."""
    state = going.state
    missing = without_valid_run(state)
    if not missing:
        going.finish(state.answer)
        return
    names = ", ".join(cell_name(cell.values, cell.variant, cell.repeat) for cell in missing)
    going.stop(f"no valid run: {names}")


def without_valid_run(state: ExperimentState) -> list[CellState]:
    return [cell for cell in state.cells if not cell.done]


def answer(records: Sequence[RunRecord]) -> SweepAnswer:
    """Which rates were held, where runs of one rate are runs of one cell."""
    if not only_rates_differ(records):
        return SweepAnswer()
    rates = by_variant(step for record in records for step in record.steps)
    return SweepAnswer(variants={name: held_rates(found) for name, found in rates.items()})


def only_rates_differ(records: Sequence[RunRecord]) -> bool:
    """Every step has a rate, and steps of a variant at one rate are of one phase and have all
    other values alike."""
    seen: dict[tuple[str | None, float], tuple[str, Mapping[str, Scalar]]] = {}
    for record in records:
        for step in record.steps:
            if step.offered_rate is None:
                return False
            this = (step.name, record.values)
            if seen.setdefault((step.variant, step.offered_rate), this) != this:
                return False
    return bool(seen)
