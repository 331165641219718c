"""Success, p95 and throughput over the rate that was really achieved: a curve a variant."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from spikelab.record import Step, Verdict
from spikelab.report import words
from spikelab.report.figures.style import (
    INK,
    LIMIT_LINE,
    Figure,
    curve,
    drawn,
    grouped,
    legend_above,
    limit_line,
    log_seconds,
    shade,
)
from spikelab.signals.core import Colour
from spikelab.slo import Objective, parse_objective

# Below this part of its offered rate, a point says which rate was asked for.
_FELL_SHORT = 0.98
# A prediction further above all that was asked for would squeeze the curves.
_MOST_ABOVE = 1.5
_PREDICTED_LINE: dict[str, Any] = {"linestyle": (0, (1, 2)), "linewidth": 1}
_FILL: dict[Verdict, Any] = {"pass": "full", "fail": "none", "inconclusive": "left"}
_MEANING = {"full": "passed", "none": "failed", "left": "inconclusive"}


@dataclass(frozen=True)
class _Quantity:
    """What is drawn upwards. `of` gives it; None where a step does not have it."""

    title: str
    about: str
    label: str
    of: Callable[[Step], float | None]


_SUCCESS = _Quantity(
    "Success over the achieved rate",
    "Share of the requests that got a good answer",
    "success",
    words.success,
)
_P95 = _Quantity(
    "p95 over the achieved rate",
    "95 of 100 good answers were faster; logarithmic",
    "p95 of good answers",
    lambda step: step.latency_seconds.p95,
)
_THROUGHPUT = _Quantity(
    "Throughput over the achieved rate",
    "Good answers a second, those of the drain and its time included",
    "good answers / s",
    words.throughput,
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
                axes.axvline(predicted[name], color=curve(number)[0], zorder=1, **_PREDICTED_LINE)
        axes.set_xlabel("achieved rate (answers / s)")
        axes.set_ylabel(quantity.label)
        axes.set_xlim(left=0)
        grouped(axes, "x")
        _upwards(axes, quantity, slo)
        _legend(axes, list(curves), verdicts, _objectives(quantity, slo))

    about = f"{quantity.about}, by the rate that was achieved. {_spoken(quantity, curves)}"
    if any(name in predicted for name in curves):
        about += " Dotted upright: what is predicted from threads and service time."
    return drawn(quantity.title, about, draw)


def _upwards(axes: Axes, quantity: _Quantity, slo: Sequence[str]) -> None:
    if quantity is _THROUGHPUT:
        axes.set_ylim(bottom=0)
        most = max(axes.get_xlim()[1], axes.get_ylim()[1])
        axes.axline((0, 0), slope=1, color=shade(Colour.LIMIT), linestyle=(0, (1, 2)), linewidth=1)
        axes.set_ylim(0, most)
        grouped(axes, "y")
        return
    objectives = _objectives(quantity, slo)
    if quantity is _SUCCESS:
        low = min([axes.get_ylim()[0], *(each.limit for each in objectives)])
        axes.set_ylim(min(low, 0.98), 1.0 + (1 - min(low, 0.98)) * 0.06)
        axes.yaxis.set_major_formatter(lambda value, _: words.share(round(min(value, 1.0), 6)))
        axes.set_yticks([tick for tick in axes.get_yticks() if tick <= 1.0001])
    for each in objectives:
        limit_line(axes, each.limit)
    if quantity is _P95:
        log_seconds(axes)


def _objectives(quantity: _Quantity, slo: Sequence[str]) -> list[Objective]:
    key = {_SUCCESS.title: "success", _P95.title: "p95"}.get(quantity.title)
    return [each for each in map(parse_objective, slo) if each.key == key]


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
        look: dict[str, Any] = {
            "markerfacecoloralt": "white",
            "fillstyle": _FILL[verdict],
            "zorder": 3,
        }
        style: dict[str, Any] = {"marker": marker, "color": colour, "linestyle": "none", **look}
        if verdict == "fail":
            style |= {"fillstyle": "full", "markerfacecolor": "white"}
        axes.plot(*_columns(found), **style)
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
            fill = _FILL[verdict]
            handles.append(
                Line2D(
                    [],
                    [],
                    color=INK,
                    marker="o",
                    linestyle="none",
                    fillstyle="full" if fill == "none" else fill,
                    markerfacecolor="white" if fill == "none" else INK,
                    markerfacecoloralt="white",
                    label=_MEANING[fill],
                )
            )
    for each in objectives:
        handles.append(Line2D([], [], label=each.text, **LIMIT_LINE))
    legend_above(axes, handles, columns=3)


def _spoken(quantity: _Quantity, curves: dict[str, list[Step]]) -> str:
    """The highest rate's figures in words."""
    said = []
    for name, steps in curves.items():
        values = [value for value in map(quantity.of, steps) if value is not None]
        if values:
            shown = words.seconds if quantity is _P95 else words.share
            if quantity is _THROUGHPUT:
                shown = words.rate
            of = f"{name}: " if name else ""
            said.append(f"{of}{shown(min(values))} to {shown(max(values))}")
    return "; ".join(said) + "."
