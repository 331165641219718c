"""Tables of experiments: a sweep's rates or runs, the steps of a capacity search, and a comparison
with what a new one would need."""

from collections.abc import Callable
from typing import Any

from spikelab.comparison.pairing import show_place
from spikelab.comparison.verdict import figure, label
from spikelab.experiments.sweep import outcome
from spikelab.report.run_tables import figures, of_all_steps, verdict
from spikelab.report.steps import Curves
from spikelab.report.tables import Column, Table, number, table, text
from spikelab.results.comparison import ComparisonRecord, Result
from spikelab.results.experiment import CapacityAnswer, CellState, ExperimentState, OverloadAnswer
from spikelab.results.run import Resources, RunRecord
from spikelab.units import (
    MISSING,
    show_count,
    show_percent,
    show_rate,
    show_seconds,
    show_success,
)


def rates(curves: Curves, *names: str) -> Table:
    """Rates and what became of each, with these figures of its repeats side by side."""
    columns = [
        *([text(curves.of, lambda tried: tried[0])] if curves.of else []),
        number("offered/s", lambda tried: f"{tried[1]:,.15g}"),
        *map(_of_each_repeat, figures(*names)),
        text("outcome", lambda tried: outcome(tried[2])),
    ]
    tried = [
        (name, rate, steps) for name, tried in curves.rates.items() for rate, steps in tried.items()
    ]
    return table("Rates", columns, tried, "Repeats of one rate stand side by side.")


def _of_each_repeat(column: Column[Any]) -> Column[Any]:
    return number(column.name, lambda tried: " | ".join(map(column.of, tried[2])))


def cells(state: ExperimentState) -> Table:
    """A row a planned run; those of a kind stand together, whatever order they were run in."""
    names = dict.fromkeys(name for cell in state.cells for name in cell.values)
    columns = [
        *map(_value, names),
        text("variant", lambda cell: cell[0].variant or ""),
        number("repeat", lambda cell: str(cell[0].repeat)),
        *map(_of_the_run, figures("requests", "failed", "p50", "p95", "p99")),
        text("verdict", lambda cell: verdict(cell[1]) if cell[1] else "no valid run"),
    ]
    records = [
        (cell, RunRecord.read(cell.testid) if cell.testid else None)
        for cell in sorted(state.cells, key=_place)
    ]
    return table("Runs", columns, records)


def _value(name: str) -> Column[Any]:
    return text(name, lambda cell: str(cell[0].values.get(name, "")))


def _of_the_run(column: Column[Any]) -> Column[Any]:
    of = of_all_steps(column).of
    return number(column.name, lambda cell: of(cell[1]) if cell[1] else MISSING)


def _place(cell: CellState) -> tuple[object, ...]:
    return (tuple(cell.values.values()), cell.variant or "", cell.repeat)


_RESOURCES: dict[str, Callable[[Resources], str]] = {
    "CPU": lambda used: show_percent(used.cpu_share),
    "memory": lambda used: (
        MISSING if used.memory_bytes is None else f"{used.memory_bytes / 1e6:,.0f} MB"
    ),
    "open files": lambda used: show_count(used.open_files),
    "workers": lambda used: show_percent(used.worker_threads_share),
}


def search_by_value(answer: CapacityAnswer) -> Table:
    """The steps of a capacity search by their rate, with the resources that were seen."""
    columns = [
        number(answer.parameter, lambda step: f"{step.value:,.6g}"),
        *figures("started/s", "success", "p50", "p95", "p99"),
        *map(_resource, _RESOURCES),
        text("verdict", lambda s: f"{s.verdict} ({s.why})" if s.why else s.verdict),
    ]
    return table("Steps", columns, sorted(answer.steps, key=lambda step: step.value))


def _resource(name: str) -> Column[Any]:
    of = _RESOURCES[name]
    return Column(name, lambda step: of(step.resources), number=True, optional=True)


def search_in_order(answer: CapacityAnswer) -> list[Table]:
    """The steps of a capacity search as they were tried, and the overload after them."""
    places = {id(step): place for place, step in enumerate(answer.steps, 1)}
    columns = [
        number("step", lambda step: str(places[id(step)])),
        number(
            "offered/s" if answer.parameter == "rate" else answer.parameter,
            lambda step: f"{step.value:,.6g}",
        ),
        *figures("started/s", "achieved/s", "success", "p95", "p99", "verdict"),
        text("why", lambda step: step.why),
    ]
    steps = table("Steps", columns, answer.steps)
    return [steps, _overload(answer.overload)] if answer.overload else [steps]


def _overload(found: OverloadAnswer) -> Table:
    back = "not seen" if found.recovery_seconds is None else f"{found.recovery_seconds:.0f} s"
    rows = [
        ("outcome", found.outcome),
        ("offered", f"{show_rate(found.rate)}/s, {found.factor:g} times the capacity"),
        ("good within the SLO", f"{show_rate(found.goodput)}/s"),
        ("refused at once", show_success(found.refused_share)),
        ("timed out or dropped", show_success(found.timed_out_share)),
        ("p95", show_seconds(found.latency_seconds.p95)),
        (f"recovered at {show_rate(found.recovery_rate)}/s after", back),
    ]
    return Table("Overload", ("", ""), rows)


def metrics(record: ComparisonRecord, a: str, b: str) -> Table:
    """A row a metric and place, the primary one first. `a`, `b`: what the sides are called."""
    columns = [
        text("metric", _metric),
        number(a, lambda result: figure(result.a, result.unit)),
        number(b, lambda result: figure(result.b, result.unit)),
        number("B / A", lambda result: MISSING if result.ratio is None else f"×{result.ratio:.3f}"),
    ]
    if record.verdict is not None:
        columns += [
            number(f"{show_percent(record.confidence_level)} interval", _interval),
            number("pairs", lambda result: str(len(result.pairs))),
            text("verdict", lambda result: result.verdict or MISSING),
        ]
    note = (
        f"A is {record.a.name}, B is {record.b.name}. Figures are geometric means over the pairs."
    )
    return table("Metrics", columns, record.results, note)


def metric_at_place(result: Result) -> str:
    """``p95 rate=600``"""
    return " ".join(filter(None, [label(result.metric), show_place(result.place)]))


def _metric(result: Result) -> str:
    return metric_at_place(result) + (" (primary)" if result.primary else "")


def _interval(result: Result) -> str:
    return MISSING if result.low is None else f"{result.low:.3f} to {result.high:.3f}"


def advice(record: ComparisonRecord) -> Table | None:
    """What a new comparison would need; None where nothing asks for one."""
    advised = [(result, result.advice) for result in record.results if result.advice]
    columns = [
        text("metric", lambda row: _metric(row[0])),
        number("pairs needed", lambda row: _pairs_needed(row[1].pairs_needed)),
        number("smallest difference seen", lambda row: _above_1(row[1].smallest_difference)),
    ]
    return table("What a new comparison would need", columns, advised) if advised else None


def noise(record: ComparisonRecord) -> Table | None:
    """How finely this machine can compare; None but for identical arms."""
    columns = [
        text("metric", lambda each: label(each.metric)),
        number("pairs", lambda each: str(each.pairs)),
        number("noise of a pair", lambda each: show_percent(each.log_deviation)),
        number("smallest difference seen", lambda each: _above_1(each.smallest_difference)),
        number(
            f"pairs for a margin of {show_percent(record.margin)}",
            lambda each: (
                MISSING if each.log_deviation is None else _pairs_needed(each.pairs_needed)
            ),
        ),
        Column("", lambda each: each.reason or "", optional=True),
    ]
    title = "This machine's own noise, from identical arms"
    return table(title, columns, record.noise) if record.noise else None


def _pairs_needed(pairs: int | None) -> str:
    return show_count(pairs) if pairs else "over 1,000"


def _above_1(ratio: float | None) -> str:
    """The difference that a ratio above 1 is."""
    return MISSING if ratio is None else show_percent(ratio - 1)
