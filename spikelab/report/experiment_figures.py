"""Figures of experiments: success, p95 and throughput over the rate that was really achieved; runs
that differ in something else side by side, and measured beside predicted; the steps of a capacity
search; the ratios and pairs of a comparison."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from spikelab.comparison.verdict import called
from spikelab.objectives import Objective, Verdict, parse_objective
from spikelab.prediction.check import checks
from spikelab.report.experiment_tables import metric_at_place
from spikelab.report.sentences import VERDICT_WORDS
from spikelab.report.steps import name_of_step
from spikelab.report.style import (
    INK,
    LIMIT_LINE,
    Figure,
    curve,
    drawn,
    grouped,
    legend_above,
    limit_line,
    log_seconds,
    numbered,
    shade,
)
from spikelab.results.comparison import ComparisonRecord, Result
from spikelab.results.experiment import CapacityAnswer
from spikelab.results.run import RunRecord, Step
from spikelab.signals import Colour
from spikelab.units import plural, show_percent, show_rate, show_seconds, show_success

_COLOURS: dict[str, Colour] = {
    "pass": Colour.GOOD,
    "fail": Colour.FAILED,
    "inconclusive": Colour.INCONCLUSIVE,
    "better": Colour.GOOD,
    "worse": Colour.FAILED,
    "equivalent": Colour.WORKING,
}
# Below this part of its offered rate, a point says which rate was asked for.
_FELL_SHORT = 0.98
# A prediction further above all that was asked for would squeeze the curves.
_MOST_ABOVE = 1.5
_DOTTED: dict[str, Any] = {"linestyle": (0, (1, 2)), "linewidth": 1}
# More rows than these are not told apart by their names beside a figure.
_MOST_ROWS = 40


@dataclass(frozen=True)
class _Quantity:
    """A figure of a step that is drawn. `of` gives it, None where a step does not have it; `key`
    is that of its objectives."""

    key: str
    title: str
    about: str
    label: str
    of: Callable[[Step], float | None]
    show: Callable[[float | None], str]


def _throughput(step: Step) -> float | None:
    """Good answers a second, over the step's window and drain."""
    return step.good / step.seconds if step.seconds > 0 else None


_SUCCESS = _Quantity(
    "success",
    "Success",
    "Share of the requests that got a good answer",
    "success",
    lambda step: step.success,
    show_success,
)
_P95 = _Quantity(
    "p95",
    "p95",
    "95 of 100 good answers were faster; logarithmic",
    "p95 of good answers",
    lambda step: step.latency_seconds.p95,
    show_seconds,
)
_THROUGHPUT = _Quantity(
    "throughput",
    "Throughput",
    "Good answers a second, those of the drain and its time included",
    "good answers / s",
    _throughput,
    show_rate,
)


def over_rate(
    curves: dict[str, list[Step]], slo: Sequence[str], predicted: Mapping[str, float]
) -> list[Figure]:
    """Three figures, without one that has no value. `curves`: the steps of each, all with an
    offered rate. `predicted`: the rate that its threads can answer, of curves that have one."""
    asked = max((step.offered_rate or 0 for steps in curves.values() for step in steps), default=0)
    near = {name: rate for name, rate in predicted.items() if rate <= _MOST_ABOVE * asked}
    return [
        _figure(quantity, curves, slo, near)
        for quantity in (_SUCCESS, _P95, _THROUGHPUT)
        if any(_point(step, quantity.of) for steps in curves.values() for step in steps)
    ]


def _point(step: Step, of: Callable[[Step], float | None]) -> tuple[float, float] | None:
    """Achieved rate and value; None where one is missing."""
    value, achieved = of(step), step.achieved_rate
    return None if value is None or achieved is None else (achieved, value)


def _figure(
    quantity: _Quantity,
    curves: dict[str, list[Step]],
    slo: Sequence[str],
    predicted: Mapping[str, float],
) -> Figure:
    def draw(axes: Axes) -> None:
        verdicts = set()
        for number, (name, steps) in enumerate(curves.items()):
            verdicts |= _curve(axes, number, steps, quantity.of)
            if name in predicted:
                axes.axvline(predicted[name], color=curve(number)[0], zorder=1, **_DOTTED)
        axes.set_xlabel("achieved rate (answers / s)")
        axes.set_ylabel(quantity.label)
        axes.set_xlim(left=0)
        grouped(axes, "x")
        _upwards(axes, quantity, slo)
        _legend(axes, list(curves), verdicts, _objectives(quantity, slo))

    about = f"{quantity.about}, by the rate that was achieved. {_spoken(quantity, curves)}"
    if any(name in predicted for name in curves):
        about += " Dotted upright: what is predicted from threads and service time."
    return drawn(f"{quantity.title} over the achieved rate", about, draw)


def _upwards(axes: Axes, quantity: _Quantity, slo: Sequence[str]) -> None:
    if quantity is _THROUGHPUT:
        axes.set_ylim(bottom=0)
        most = max(axes.get_xlim()[1], axes.get_ylim()[1])
        axes.axline((0, 0), slope=1, color=shade(Colour.LIMIT), **_DOTTED)
        axes.set_ylim(0, most)
        grouped(axes, "y")
        return
    objectives = _objectives(quantity, slo)
    if quantity is _SUCCESS:
        low = min([axes.get_ylim()[0], *(each.limit for each in objectives)])
        axes.set_ylim(min(low, 0.98), 1.0 + (1 - min(low, 0.98)) * 0.06)
        axes.yaxis.set_major_formatter(lambda value, _: show_success(round(min(value, 1.0), 6)))
        axes.set_yticks([tick for tick in axes.get_yticks() if tick <= 1.0001])
    for each in objectives:
        limit_line(axes, each.limit)
    if quantity is _P95:
        log_seconds(axes)


def _objectives(quantity: _Quantity, slo: Sequence[str]) -> list[Objective]:
    return [each for each in map(parse_objective, slo) if each.key == quantity.key]


def _curve(
    axes: Axes, number: int, steps: Sequence[Step], of: Callable[[Step], float | None]
) -> set[Verdict]:
    """Every repeat a dot, and a line through the medians in order of the rates asked for. Returns
    the verdicts that were drawn."""
    colour, marker = curve(number)
    points: dict[float, list[tuple[float, float]]] = {}
    seen: dict[Verdict, list[tuple[float, float]]] = {}
    for step in sorted(steps, key=lambda step: step.offered_rate or 0):
        if point := _point(step, of):
            points.setdefault(step.offered_rate or 0, []).append(point)
            seen.setdefault(step.verdict, []).append(point)
    middles = {rate: _middle(found) for rate, found in points.items()}
    axes.plot(*_columns(middles.values()), color=colour, linewidth=1.2, zorder=2)
    for verdict, found in seen.items():
        axes.plot(*_columns(found), **_dot(verdict, colour, marker), zorder=3)
    for place, (rate, (x, y)) in enumerate(middles.items()):
        if x < _FELL_SHORT * rate:
            axes.annotate(
                f"{rate:,.6g}",
                (x, y),
                xytext=(0, -5 if place % 2 else 5),
                textcoords="offset points",
                fontsize=7,
                color=colour,
                ha="center",
                va="top" if place % 2 else "bottom",
            )
    return set(seen)


def _dot(verdict: Verdict, colour: str, marker: str) -> dict[str, Any]:
    """Full: passed; half full: inconclusive; empty: failed."""
    return {
        "marker": marker,
        "color": colour,
        "linestyle": "none",
        "fillstyle": "left" if verdict == "inconclusive" else "full",
        "markerfacecolor": "white" if verdict == "fail" else colour,
        "markerfacecoloralt": "white",
    }


def _middle(found: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return median(x for x, _ in found), median(y for _, y in found)


def _columns(points: Iterable[tuple[float, float]]) -> tuple[list[float], list[float]]:
    pairs = list(points)
    return [x for x, _ in pairs], [y for _, y in pairs]


def _legend(
    axes: Axes, names: Sequence[str], verdicts: set[Verdict], objectives: Sequence[Objective]
) -> None:
    handles = []
    for number, name in enumerate(names):
        colour, marker = curve(number)
        if name:
            handles.append(Line2D([], [], color=colour, marker=marker, label=name))
    for verdict in ("pass", "inconclusive", "fail"):
        if verdict in verdicts:
            look = _dot(verdict, INK, "o")
            handles.append(Line2D([], [], **look, label=VERDICT_WORDS[verdict]))
    for each in objectives:
        handles.append(Line2D([], [], label=each.text, **LIMIT_LINE))
    legend_above(axes, handles, columns=3)


def _spoken(quantity: _Quantity, curves: dict[str, list[Step]]) -> str:
    """The highest rate's figures in words."""
    ranges = []
    for name, steps in curves.items():
        values = [value for value in map(quantity.of, steps) if value is not None]
        if values:
            of = f"{name}: " if name else ""
            ranges.append(f"{of}{quantity.show(min(values))} to {quantity.show(max(values))}")
    return "; ".join(ranges) + "."


def by_cell(records: Sequence[RunRecord], slo: Sequence[str]) -> list[Figure]:
    """Success and p95 of every step, a row for each thing that was run."""
    points = [(name_of_step(record, step), step) for record in records for step in record.steps]
    rows = numbered(name for name, _ in points)
    if len(rows) > _MOST_ROWS:
        return []
    drawn_rows = (_rows(quantity, rows, points, slo) for quantity in (_SUCCESS, _P95))
    return [figure for figure in drawn_rows if figure]


def _rows(
    quantity: _Quantity,
    rows: dict[str, int],
    points: Sequence[tuple[str, Step]],
    slo: Sequence[str],
) -> Figure | None:
    known = [
        (rows[name], value, step.verdict)
        for name, step in points
        if (value := quantity.of(step)) is not None
    ]
    if not known:
        return None

    def draw(axes: Axes) -> None:
        for row, value, verdict in known:
            axes.plot([value], [row], "o", color=shade(_COLOURS[verdict]), alpha=0.75)
        for row in rows.values():
            if values := [value for place, value, _ in known if place == row]:
                axes.plot([median(values)], [row], "|", color=INK, markersize=13)
        axes.set_yticks(list(rows.values()), list(rows))
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel(quantity.label)
        for objective in _objectives(quantity, slo):
            axes.axvline(objective.limit, zorder=1, **LIMIT_LINE)
        if quantity is _P95:
            log_seconds(axes, "x")
        else:
            axes.xaxis.set_major_formatter(lambda value, _: show_success(value))
            axes.locator_params(axis="x", nbins=5)
            width = max(0.05, 1.05 * (1 - min(value for _, value, _ in known)))
            axes.set_xlim(1 - width, 1 + width / 20)

    ordered = sorted(value for _, value, _ in known)
    low, high = quantity.show(ordered[0]), quantity.show(ordered[-1])
    about = (
        f"Of each run its {quantity.label}, a dot a repeat and a stroke at their median; the "
        f"dashed line is the objective. Between {low} and {high}."
    )
    return drawn(f"{quantity.title} by run", about, draw, height=1.1 + 0.24 * len(rows))


def predicted(records: Sequence[RunRecord]) -> list[Figure]:
    """Predicted beside measured, where records have a prediction."""
    held, good = [], []
    for record in records:
        given, found = record.prediction, checks(record)
        if given is None or not found:
            continue
        established, answers = found[0].within, found[1].within
        if (peak := record.connections.established_peak) is not None:
            figures = (
                given.established_least,
                given.established_peak,
                given.established_most,
            )
            held.append(_Predicted(*figures, peak, established))
        figures = given.good_least, given.good, given.good_most
        good.append(_Predicted(*figures, record.steps[0].good, answers))
    if not good:
        return []
    return [
        _diagonal("Connections, predicted and measured", "established connections", held),
        _diagonal("Good answers, predicted and measured", "good answers", good),
    ]


@dataclass(frozen=True)
class _Predicted:
    """A figure as it was predicted, with what its tolerance allows, and as it was measured."""

    least: float
    predicted: float
    most: float
    measured: float
    within: bool | None


def _diagonal(title: str, label: str, points: Sequence[_Predicted]) -> Figure:
    within = sum(bool(point.within) for point in points)

    def draw(axes: Axes) -> None:
        values = [float(v) for each in points for v in (each.predicted, each.measured)] or [1.0]
        least, most = min(values), max(values)
        scale: dict[str, Any] = (
            {"value": "log"} if least > 0 else {"value": "symlog", "linthresh": 1}
        )
        ends = (least * 0.7 if least > 0 else 0, most * 1.4)
        axes.plot(ends, ends, "--", color=shade(Colour.PREDICTED), linewidth=1)
        colour, marker = curve(0)
        measured = [each.measured for each in points]
        tolerances = [each.least for each in points], [each.most for each in points]
        axes.hlines(measured, *tolerances, color=shade(Colour.PREDICTED), linewidth=2)
        axes.plot([each.predicted for each in points], measured, marker, color=colour)
        axes.set_xscale(**scale)
        axes.set_yscale(**scale)
        axes.set_xlim(*ends)
        axes.set_ylim(*ends)
        axes.set_xlabel(f"predicted {label}")
        axes.set_ylabel(f"measured {label}")
        grouped(axes, "x")
        grouped(axes, "y")

    about = (
        f"Each run's {label}, measured over predicted, with what the prediction's tolerance allows;"
        f" on the dashed line they are equal. As predicted: {within} of {len(points)} runs."
    )
    return drawn(title, about, draw)


_SEARCH_MARKERS: dict[Verdict, str] = {"pass": "o", "fail": "X", "inconclusive": "s"}


def search(answer: CapacityAnswer) -> list[Figure]:
    """One figure; none before the first step."""
    return [_search_steps(answer)] if answer.steps else []


def _search_steps(answer: CapacityAnswer) -> Figure:
    unit = "requests / s" if answer.parameter == "rate" else answer.parameter
    steps, overload = answer.steps, answer.overload

    def draw(axes: Axes) -> None:
        low, high = answer.highest_pass, answer.lowest_fail
        if low is not None and high is not None:
            axes.axhspan(low, high, color=shade(Colour.WORKING), alpha=0.14, linewidth=0, zorder=0)
        numbers = range(1, len(steps) + 1)
        axes.plot(numbers, [s.value for s in steps], color=shade(Colour.LIMIT), linewidth=0.8)
        handles = []
        for verdict, marker in _SEARCH_MARKERS.items():
            found = [
                (n, s.value) for n, s in zip(numbers, steps, strict=True) if s.verdict == verdict
            ]
            if found:
                style: dict[str, Any] = {
                    "marker": marker,
                    "color": shade(_COLOURS[verdict]),
                    "linestyle": "none",
                }
                axes.plot(*zip(*found, strict=True), **style, markersize=6, zorder=3)
                handles.append(Line2D([], [], **style, markersize=6, label=VERDICT_WORDS[verdict]))
        if overload:
            style = {"marker": "^", "color": shade(Colour.TURNED_AWAY), "linestyle": "none"}
            axes.plot([len(steps) + 1], [overload.rate], **style, markersize=7)
            handles.append(Line2D([], [], **style, label="overload"))
        axes.set_yscale("log")
        axes.set_xlabel("step")
        axes.set_ylabel(unit)
        axes.set_yticks(_ticks(axes))
        axes.minorticks_off()
        grouped(axes, "y")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        legend_above(axes, handles=handles)

    band = ""
    if answer.highest_pass is not None and answer.lowest_fail is not None:
        band = f"; the band is the answer, {answer.highest_pass:,.6g} to {answer.lowest_fail:,.6g}"
    about = f"What each step tried, in order, and its verdict; logarithmic{band}."
    return drawn("Steps of the search", about, draw)


def _ticks(axes: Axes) -> list[float]:
    """1, 1.5, 2, 3, 5, 7 of each decade that is in sight: a search covers less than two."""
    low, high = axes.get_ylim()
    digits = (1, 1.5, 2, 3, 5, 7)
    return [d * 10.0**e for e in range(-3, 7) for d in digits if low <= d * 10.0**e <= high]


def comparison(record: ComparisonRecord) -> list[Figure]:
    """The forest plot, and the pairs of the metric that decides."""
    figures = [_forest(record)] if any(result.ratio for result in record.results) else []
    first = record.deciding or next((each for each in record.results if each.metric == "p95"), None)
    if first and _measured(first):
        figures.append(_pairs(record, first))
    return figures


def _forest(record: ComparisonRecord) -> Figure:
    rows = [result for result in record.results if result.ratio][:_MOST_ROWS]

    def draw(axes: Axes) -> None:
        low, high = 1 / (1 + record.margin), 1 + record.margin
        axes.axvspan(low, high, color=shade(Colour.LIMIT), alpha=0.16, linewidth=0, zorder=0)
        axes.axvline(1, color=INK, linewidth=0.9, zorder=1)
        for place, result in enumerate(rows):
            colour = shade(_COLOURS.get(result.verdict or "", Colour.INCONCLUSIVE))
            if result.low is not None and result.high is not None:
                axes.plot((result.low, result.high), [place] * 2, color=colour, linewidth=2)
            marker = "D" if result.primary else "o"
            axes.plot([result.ratio or 1], [place], marker, color=colour, markersize=6)
        axes.set_xscale("log")
        axes.set_yticks(range(len(rows)), [metric_at_place(result) for result in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.xaxis.set_minor_locator(MaxNLocator(1))
        axes.xaxis.set_major_formatter(lambda value, _: f"×{value:.4g}")
        axes.xaxis.set_minor_formatter(lambda value, _: "")
        axes.set_xlabel(f"{called(record.b, record.a)} / {called(record.a, record.b)}")
        axes.grid(visible=False, axis="y")

    about = f"{called(record.b, record.a)} divided by {called(record.a, record.b)}"
    if record.verdict is None:
        about += f". The band is the margin of {show_percent(record.margin)}."
    else:
        about += (
            f", with the {show_percent(record.confidence_level)} interval over pairs of runs. The "
            f"band is the margin of {show_percent(record.margin)}: what lies whole within it does "
            "not matter. The diamond decides."
        )
    height = 1.1 + 0.27 * len(rows)
    return drawn("Ratios and their intervals", about, draw, height=height)


def _measured(result: Result) -> list[tuple[float, float]]:
    return [
        (pair.a, pair.b)
        for pair in result.pairs
        if isinstance(pair.a, int | float) and isinstance(pair.b, int | float)
    ]


def _pairs(record: ComparisonRecord, result: Result) -> Figure:
    pairs = _measured(result)

    def draw(axes: Axes) -> None:
        sides = [called(record.a, record.b), called(record.b, record.a)]
        for a, b in pairs:
            axes.plot([0, 1], [a, b], color=shade(Colour.LIMIT), linewidth=0.9, alpha=0.7, zorder=1)
        for place, values in enumerate(zip(*pairs, strict=True)):
            colour, marker = curve(place)
            axes.plot([place] * len(values), values, marker, color=colour, zorder=2)
        axes.set_xlim(-0.4, 1.4)
        axes.set_xticks([0, 1], sides)
        axes.set_ylabel(metric_at_place(result))
        _scale(axes, result, pairs)

    higher = sum(b > a for a, b in pairs)
    about = (
        f"{metric_at_place(result)} of each pair of runs, joined by a line: "
        f"{called(record.b, record.a)} is higher in {higher} of {plural(len(pairs), 'pair')}."
    )
    return drawn("Pairs of runs", about, draw)


def _scale(axes: Axes, result: Result, pairs: Sequence[tuple[float, float]]) -> None:
    if result.unit == "s" and min(min(pair) for pair in pairs) > 0:
        log_seconds(axes)
    elif result.unit == "share":
        axes.yaxis.set_major_formatter(lambda value, _: show_percent(value))
    else:
        grouped(axes, "y")
