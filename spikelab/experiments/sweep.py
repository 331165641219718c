"""A sweep: values, variants and repeats, each a run, in an order that a drift does not favour; and
which of the tested rates a service holds, from the judged steps of several repeats."""

import random
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from time import monotonic
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from spikelab import paths
from spikelab.console import say, warn
from spikelab.errors import UsageError, did_you_mean
from spikelab.experiments.session import TRIES, Experiment, ExperimentSession, TimeLeft
from spikelab.judge import started_enough
from spikelab.objectives import Verdict, over_repeats
from spikelab.plans.load import changed, parameter_value, split_assignment
from spikelab.plans.model import Plan
from spikelab.plans.studies import Sweep, combinations
from spikelab.results.experiment import CellState, ExperimentKind
from spikelab.results.run import RunRecord, Scalar, Step
from spikelab.run import RunOptions
from spikelab.stack.base import Runtime
from spikelab.units import show_duration, show_seconds


class HeldRates(BaseModel):
    """Offered requests/s. Every tested rate up to `highest_passing_rate` was held; null: not even
    the lowest was. `lowest_failing_rate` is null where none failed."""

    model_config = ConfigDict(extra="forbid")

    highest_passing_rate: int | float | None
    lowest_failing_rate: int | float | None
    inconclusive: list[int | float]
    not_reached: list[int | float]


class SweepAnswer(BaseModel):
    """What the steps of a sweep over rates say, by variant; empty where rates are not all that
    differs."""

    model_config = ConfigDict(extra="forbid")

    variants: dict[str, HeldRates] = Field(default_factory=dict)


Order = Literal["abba", "blocks", "as-written"]


@dataclass(frozen=True)
class Changes:
    """What the command line changes in a plan's sweep; None leaves it as it is."""

    values: Sequence[str] = ()
    repeats: int | None = None
    order: Order | None = None
    seed: int | None = None

    def applied(self, plan: Plan) -> Plan:
        """The plan with these. Raises UsageError."""
        sweep: dict[str, Any] = dict(plan.source.data.get("sweep") or {})
        asked = {
            key: _values(plan, key, text)
            for key, text in (split_assignment(each, "--values") for each in self.values)
        }
        if asked:
            sweep["values"] = {**(plan.sweep.values if plan.sweep else {}), **asked}
        if self.order is not None:
            sweep["order"] = self.order
        if self.seed is not None:
            sweep["seed"] = self.seed
        keys: dict[str, Any] = {"sweep": sweep} if sweep else {}
        if self.repeats is not None:
            keys["repeats"] = self.repeats
        return changed(plan, **keys) if keys else plan


def _values(plan: Plan, key: str, text: str) -> list[Scalar]:
    parameters = plan.parameters
    if key not in parameters:
        cure = did_you_mean(key, parameters) if parameters else " (the plan has none)"
        raise UsageError(f"--values {key}={text}: '{key}' is no parameter of the plan{cure}")
    return [
        parameter_value("--values", key, each.strip(), parameters[key]) for each in text.split(",")
    ]


def each_variant(plan: Plan, options: RunOptions) -> Experiment:
    """The runs of a plan as it is: every variant once a round, so that drift meets all of them."""
    names = [variant.name for variant in plan.variants]
    cells = cells_in_order({}, names, plan.repeats, "as-written", seed=0)
    return Experiment.new("run", plan, options, cells)


def run_each(experiment: Experiment, runtime: Runtime) -> Iterator[RunRecord]:
    """Runs every cell in order, yielding each record; one that cannot be run ends it.

    Raises LabError or RunInterruptedError.
    """
    with experiment.session(runtime) as session:
        for cell in experiment.state.cells:
            yield session.run(cell)
        session.finish()


def new_sweep(
    plan: Plan,
    options: RunOptions,
    kind: ExperimentKind = "sweep",
    *,
    fresh: bool | None = None,
    asked: str = "",
) -> Experiment:
    """A sweep from its first run on. `fresh`, `asked`: as an experiment has them.

    Raises UsageError when the plan has nothing to sweep.
    """
    if plan.sweep is None and not plan.variants and plan.repeats == 1:
        raise UsageError(
            f"{paths.shown(plan.path)}: nothing to sweep: add --values rate=200,400 or --repeats "
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
    return Experiment.new(
        kind, plan, options, cells, seed=kept, order=sweep.order, fresh=fresh, asked=asked
    )


def run_sweep(session: ExperimentSession) -> None:
    """Runs what is left of a sweep and keeps its answer.

    Raises LabError or RunInterruptedError.
    """
    run_cells(session)
    session.state.answer = answer(list(session.state.records())).model_dump(mode="json")
    end(session)


def run_cells(session: ExperimentSession, repeats: int | None = None) -> None:
    """Runs every cell that is not done; one that has no valid run is passed over in the end.
    `repeats`: only those of the first so many.

    Raises LabError or RunInterruptedError.
    """
    cells = session.state.cells
    planned = session.experiment.planned_seconds()
    left = TimeLeft()
    for place, cell in enumerate(cells):
        if cell.done or (repeats is not None and cell.repeat > repeats):
            continue
        rest = [s for each, s in zip(cells[place:], planned[place:], strict=True) if not each.done]
        wait = show_duration(left.seconds(rest))
        say(f"run {place + 1} of {len(cells)}: {cell.name}, about {wait} left")
        began = monotonic()
        for tried, record in enumerate(session.run_until_valid(cell), 1):
            left.took(planned[place], monotonic() - began)
            if record.valid:
                say(f"{cell.name}: {_summary(record)}")
            else:
                again = "once more" if tried < TRIES else "going on without it"
                warn(f"{cell.name}: no valid run ({'; '.join(record.reasons)}): {again}")
            began = monotonic()


def _summary(record: RunRecord) -> str:
    requests = sum(step.requests for step in record.steps)
    failures = sum(step.failures for step in record.steps)
    text = f"{record.verdict}, {requests:,} requests, {failures:,} failed"
    if record.steps:
        text += f", p95 {show_seconds(record.steps[-1].latency_seconds.p95)}"
    return text


def end(session: ExperimentSession) -> None:
    """Finished when every cell has a valid run, else stopped; the answer is the state's."""
    missing = ", ".join(cell.name for cell in session.state.cells if not cell.done)
    if missing:
        session.stop(f"no valid run: {missing}")
    else:
        session.finish(session.state.answer)


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


ORDERS: tuple[Order, ...] = get_args(Order)
_SEED_BITS = 32


def draw_seed() -> int:
    """A seed where none is given; the experiment's state records it."""
    return secrets.randbits(_SEED_BITS)


def cells_in_order(
    values: Mapping[str, Sequence[Scalar]],
    variants: Sequence[str],
    repeats: int,
    order: Order,
    seed: int,
) -> list[CellState]:
    """Every combination of the values, with every variant, so many times; in each repeat, all.

    `abba`: every second repeat is the one before it backwards, so that a drift in a line weighs on
    all values and variants alike (a counterbalanced order); each such two begin with another value,
    so that none is always first, last or in the middle. `blocks`: each repeat shuffled as a whole
    by the seed (a randomised block design: Box, Hunter and Hunter, Statistics for Experimenters,
    ch. 4).
    `as-written`: always the same.
    """
    chance = random.Random(seed)
    return [
        cell
        for repeat in range(1, repeats + 1)
        for cell in _repeat(combinations(values), variants, repeat, order, chance)
    ]


def _repeat(
    combined: Sequence[dict[str, Scalar]],
    variants: Sequence[str],
    repeat: int,
    order: Order,
    chance: random.Random,
) -> list[CellState]:
    names: Sequence[str | None] = variants or [None]
    first = (repeat - 1) // 2 % len(combined) if order == "abba" else 0
    cells = [
        CellState(values=values, variant=name, repeat=repeat)
        for values in [*combined[first:], *combined[:first]]
        for name in names
    ]
    if order == "blocks":
        chance.shuffle(cells)
    if order == "abba" and repeat % 2 == 0:
        cells.reverse()
    return cells


Outcome = Literal["held", "failed", "inconclusive", "not reached"]
_OUTCOMES: dict[Verdict, Outcome] = {
    "pass": "held",
    "fail": "failed",
    "inconclusive": "inconclusive",
}
# Steps by offered rate, in requests/s.
Rates = dict[float, list[Step]]


def by_variant(steps: Iterable[Step]) -> dict[str, Rates]:
    """Variant (empty where there is none) to steps by rate, ascending. Closed loops have no rate
    and are left out."""
    found: dict[str, Rates] = {}
    for step in steps:
        if step.offered_rate is not None:
            rates = found.setdefault(step.variant or "", {})
            rates.setdefault(step.offered_rate, []).append(step)
    return {variant: dict(sorted(rates.items())) for variant, rates in sorted(found.items())}


def outcome(repeats: Sequence[Step]) -> Outcome:
    """Of the repeats of one rate. A rate that one of them did not reach was not tested, whatever
    the others did; without that they have to agree."""
    if not all(started_enough(step) for step in repeats):
        return "not reached"
    return _OUTCOMES[over_repeats([step.verdict for step in repeats], needed=len(repeats))]


def held_rates(rates: Rates) -> HeldRates:
    """The judgement on one variant."""
    outcomes = {_plain(rate): outcome(rates[rate]) for rate in sorted(rates)}
    held = list(takewhile(lambda rate: outcomes[rate] == "held", outcomes))

    def those(wanted: Outcome) -> list[int | float]:
        return [rate for rate, found in outcomes.items() if found == wanted]

    return HeldRates(
        highest_passing_rate=held[-1] if held else None,
        lowest_failing_rate=next(iter(those("failed")), None),
        inconclusive=those("inconclusive"),
        not_reached=those("not reached"),
    )


def _plain(rate: float) -> int | float:
    return int(rate) if rate == int(rate) else rate
