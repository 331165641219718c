"""Success, p95 and throughput over the rate that was really achieved: a curve a variant."""

# - A run by seconds since its load began: latency, rates, queues; and its failures by class.
# - A comparison: ratios with their intervals and the margin, and each pair of runs.
# - A capacity search: each step's rate and verdict in order, and where the answer lies.
# - Runs that differ in something else than their rate: a dot a repeat, and measured beside what
#   was predicted.
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean, median
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from spikelab import signals
from spikelab.comparison.pairing import show_place
from spikelab.comparison.verdict import called, label
from spikelab.objectives import Objective, Verdict, parse_objective
from spikelab.prediction.check import checks
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
from spikelab.results.run import Errors, RunRecord, Step
from spikelab.series import RATES, Series
from spikelab.signals import Colour, Signal
from spikelab.units import plural, show_count, show_rate, show_seconds, show_success

# Below this part of its offered rate, a point says which rate was asked for.
_FELL_SHORT = 0.98
# A prediction further above all that was asked for would squeeze the curves.
_MOST_ABOVE = 1.5
_PREDICTED_LINE: dict[str, Any] = {"linestyle": (0, (1, 2)), "linewidth": 1}
_FILL: dict[Verdict, Any] = {"pass": "full", "fail": "none", "inconclusive": "left"}
_MEANING = {"full": "passed", "none": "failed", "left": "inconclusive"}


def _throughput(step: Step) -> float | None:
    """Good answers a second, over the step's window and drain."""
    return step.good / step.seconds if step.seconds > 0 else None


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
    lambda step: step.success,
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
    _throughput,
)


_SHOWN = {
    _SUCCESS.title: show_success,
    _P95.title: show_seconds,
    _THROUGHPUT.title: show_rate,
}


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
        axes.yaxis.set_major_formatter(lambda value, _: show_success(round(min(value, 1.0), 6)))
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
            shown = _SHOWN[quantity.title]
            of = f"{name}: " if name else ""
            said.append(f"{of}{shown(min(values))} to {shown(max(values))}")
    return "; ".join(said) + "."


# Finer than a figure of this size can show.
_MOST_POINTS = 400
_LATENCIES = {
    "p50": (signals.LATENCY_P50, ":"),
    "p95": (signals.LATENCY_P95, "-"),
    "p99": (signals.LATENCY_P99, "--"),
}
_RATES = {
    "good": (signals.GOOD_RATE, "-"),
    "failed": (signals.FAILURE_RATE, "-"),
    "dropped": (signals.DROPPED_RATE, "-"),
}
_QUEUES = {
    "established": (signals.CONNECTIONS_ESTABLISHED, "-"),
    "worker queue": (signals.WORKER_QUEUE_DEPTH, "-"),
    "accept queue": (signals.ACCEPT_QUEUE_DEPTH, "--"),
    "can hold": (signals.CONNECTIONS_PREDICTED, "--"),
}
# Another shade than the worker queue's: both are drawn on one pair of axes.
_SHADES = {"accept queue": Colour.TURNED_AWAY}
_MARGIN = 3.0


def over_time(record: RunRecord, series: Series) -> list[Figure]:
    """Latency where anything was answered, rates and, of the lab's own target, its queues."""
    answered = any(_values(series, signal) for signal, _ in _LATENCIES.values())
    figures = [_latency(record, series)] if answered else []
    figures.append(_rates(record, series))
    if signals.WORKER_QUEUE_DEPTH.name in series.points:
        figures.append(_queues(record, series))
    return figures


def errors_by_class(steps: Sequence[Step]) -> Figure | None:
    """Failed requests of all steps; None where none failed."""
    total: dict[str, int] = {}
    for step in steps:
        for name, number in step.errors.by_class().items():
            total[name] = total.get(name, 0) + number
    if not total:
        return None
    names = [name for name in reversed(Errors.model_fields) if name in total]

    def draw(axes: Axes) -> None:
        colours = [shade(signals.ERRORS_BY_CLASS.colours[name]) for name in names]
        bars = axes.barh(names, [total[name] for name in names], color=colours, height=0.55)
        axes.bar_label(bars, [show_count(total[name]) for name in names], padding=3)
        axes.set_xlabel("failed requests")
        axes.grid(visible=False, axis="y")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        grouped(axes, "x")
        axes.margins(x=0.12)
        axes.set_ylim(-0.7, len(names) - 0.3)

    listed = ", ".join(f"{name} {show_count(number)}" for name, number in total.items())
    height = 1.0 + 0.34 * len(names)
    return drawn("Failures by class", f"Failed requests: {listed}.", draw, height=height)


def percentiles(steps: Sequence[Step]) -> Figure | None:
    """Latency by percentile, a line a step; None where nothing was answered."""
    known = [step for step in steps if step.latency_seconds.p50 is not None]
    if not known:
        return None

    def draw(axes: Axes) -> None:
        for number, step in enumerate(known):
            values = step.latency_seconds.model_dump(exclude_none=True)
            colour, marker = curve(number)
            names = [name.replace("_", ".") for name in values]
            label = step.name if len(known) > 1 else None
            axes.plot(names, list(values.values()), color=colour, marker=marker, label=label)
        axes.set_ylabel("latency of good answers")
        log_seconds(axes)
        legend_above(axes)

    worst = max(step.latency_seconds.max or 0 for step in known)
    about = (
        f"Latency of good answers by percentile, logarithmic; the slowest {show_seconds(worst)}."
    )
    return drawn("Latency by percentile", about, draw)


def _latency(record: RunRecord, series: Series) -> Figure:
    def draw(axes: Axes) -> None:
        _lines(axes, series, _LATENCIES)
        log_seconds(axes)
        _phases(axes, record, series)
        axes.set_ylabel("latency of good answers")

    found = _values(series, signals.LATENCY_P95)
    about = "p50, p95 and p99 of the good answers that came in each moment, logarithmic. "
    about += (
        f"p95 between {show_seconds(min(found))} and {show_seconds(max(found))}." if found else ""
    )
    return drawn("Latency over time", about, draw, wide=True)


def _rates(record: RunRecord, series: Series) -> Figure:
    chosen = {
        name: (signal, dash)
        for name, (signal, dash) in _RATES.items()
        if name == "good" or any(_values(series, signal))
    }

    def draw(axes: Axes) -> None:
        _offered(axes, record, series)
        _lines(axes, series, chosen)
        axes.set_ylim(bottom=0)
        grouped(axes, "y")
        _phases(axes, record, series)
        axes.set_ylabel("requests / s")

    most = max(_values(series, signals.GOOD_RATE), default=0.0)
    about = (
        "Good, failed and dropped requests a second, and what was offered. "
        f"At most {most:,.0f}/s good."
    )
    return drawn("Rates and failures over time", about, draw, wide=True)


def _offered(axes: Axes, record: RunRecord, series: Series) -> None:
    """What each step asked for, on average, over its window. The series of it is the lab's own
    push, which is some seconds late."""
    label = signals.OFFERED_RATE.title
    for step in record.steps:
        if step.offered_rate is not None:
            begin = _since(step.started, series)
            end = _since(step.ended, series) - step.drain_seconds
            colour = shade(signals.OFFERED_RATE.colour)
            axes.plot([begin, end], [step.offered_rate] * 2, "--", color=colour, label=label)
            label = "_"


def _queues(record: RunRecord, series: Series) -> Figure:
    held = max(_values(series, signals.CONNECTIONS_ESTABLISHED), default=0.0)
    limit = max(_values(series, signals.CONNECTIONS_PREDICTED), default=0.0)
    chosen = dict(_QUEUES)
    if limit > _MARGIN * held:
        # A limit that far away would press all curves to the ground.
        del chosen["can hold"]

    def draw(axes: Axes) -> None:
        _lines(axes, series, chosen)
        axes.set_ylim(bottom=0)
        grouped(axes, "y")
        _phases(axes, record, series)
        axes.set_ylabel("connections, requests")

    about = (
        "Established connections, requests waiting for a worker and connections waiting to be "
        f"accepted. At most {held:,.0f} established; the settings can hold {limit:,.0f}."
    )
    return drawn("Queues over time", about, draw, wide=True)


def _lines(axes: Axes, series: Series, chosen: dict[str, tuple[Signal, str]]) -> None:
    for name, (signal, dash) in chosen.items():
        x, y = _thinned(series, signal)
        colour = shade(_SHADES.get(name, signal.colour))
        lone = sum(value is not None for value in y) <= len(y) / 3
        # A wave is one second with answers between seconds without.
        marker = "o" if lone and signal not in RATES else None
        data = [float("nan") if value is None else value for value in y]
        axes.plot(x, data, dash, color=colour, label=name, marker=marker, markersize=3)
    legend_above(axes)
    axes.set_xlabel("seconds since the load began")
    axes.set_xlim(0, max(1, len(series) * series.step_seconds))
    grouped(axes, "x")


def _thinned(series: Series, signal: Signal) -> tuple[list[float], list[float | None]]:
    """At most `_MOST_POINTS`: means of rates, the highest of all else."""
    values, seconds = series.of(signal), series.seconds
    width = -(-len(values) // _MOST_POINTS)
    together = fmean if signal in RATES else max
    x, y = [], list[float | None]()
    for begin in range(0, len(values), width):
        some = [value for value in values[begin : begin + width] if value is not None]
        x.append(float(seconds[begin]))
        y.append(together(some) if some else None)
    return x, y


def _values(series: Series, signal: Signal) -> list[float]:
    return [value for value in series.of(signal) if value is not None]


def _phases(axes: Axes, record: RunRecord, series: Series) -> None:
    """Judged phases shaded, with their names inside the axes."""
    edge = len(series) * series.step_seconds
    _headroom(axes)
    for number, step in enumerate(record.steps):
        begin, end = (_since(moment, series) for moment in (step.started, step.ended))
        begin, end = max(0.0, begin), min(float(edge), end)
        if end <= begin:
            continue
        colour = shade(Colour.WORKING if number % 2 == 0 else Colour.LIMIT)
        axes.axvspan(begin, end, color=colour, alpha=0.08, linewidth=0, zorder=0)
        if len(record.steps) <= 8:
            axes.annotate(
                step.name,
                ((begin + end) / 2, 1),
                xycoords=("data", "axes fraction"),
                xytext=(0, -3),
                textcoords="offset points",
                ha="center",
                va="top",
                fontsize=7.5,
                color=colour,
            )


def _headroom(axes: Axes) -> None:
    """Room above the curves, where the phases' names stand."""
    low, high = axes.get_ylim()
    if axes.get_yscale() == "log":
        axes.set_ylim(low, high * (high / low) ** 0.1)
    else:
        axes.set_ylim(low, high + (high - low) * 0.08)


def _since(moment: datetime, series: Series) -> float:
    return (moment - series.begun).total_seconds()


_ROW_INCHES = 0.27
_MOST_ROWS = 40
_COLOURS = {"better": Colour.GOOD, "worse": Colour.FAILED, "equivalent": Colour.WORKING}


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
        axes.set_yticks(range(len(rows)), [_named(result) for result in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.xaxis.set_minor_locator(MaxNLocator(1))
        axes.xaxis.set_major_formatter(lambda value, _: f"×{value:.4g}")
        axes.xaxis.set_minor_formatter(lambda value, _: "")
        axes.set_xlabel(f"{called(record.b, record.a)} / {called(record.a, record.b)}")
        axes.grid(visible=False, axis="y")

    about = (
        f"{called(record.b, record.a)} divided by {called(record.a, record.b)}, with the 95 % "
        f"interval over pairs of runs. The band is the margin of {record.margin * 100:.3g} %: "
        "what lies whole within it does not matter. The diamond decides."
    )
    height = 1.1 + _ROW_INCHES * len(rows)
    return drawn("Ratios and their intervals", about, draw, height=height)


def _named(result: Result) -> str:
    return " ".join(filter(None, [label(result.metric), show_place(result.place)]))


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
        axes.set_ylabel(_named(result))
        _scale(axes, result, pairs)

    higher = sum(b > a for a, b in pairs)
    about = (
        f"{_named(result)} of each pair of runs, joined by a line: "
        f"{called(record.b, record.a)} is higher in {higher} of {plural(len(pairs), 'pair')}."
    )
    return drawn("Pairs of runs", about, draw)


def _scale(axes: Axes, result: Result, pairs: Sequence[tuple[float, float]]) -> None:
    if result.unit == "s" and min(min(pair) for pair in pairs) > 0:
        log_seconds(axes)
    elif result.unit == "share":
        axes.yaxis.set_major_formatter(lambda value, _: f"{value * 100:.3g} %")
    else:
        grouped(axes, "y")


_LOOKS: dict[Verdict, tuple[str, Colour, str]] = {
    "pass": ("o", Colour.GOOD, "passed"),
    "fail": ("X", Colour.FAILED, "failed"),
    "inconclusive": ("s", Colour.INCONCLUSIVE, "inconclusive"),
}


def search(answer: CapacityAnswer) -> list[Figure]:
    """One figure; none before the first step."""
    return [_steps(answer)] if answer.steps else []


def _steps(answer: CapacityAnswer) -> Figure:
    unit = "requests / s" if answer.parameter == "rate" else answer.parameter
    steps, overload = answer.steps, answer.overload

    def draw(axes: Axes) -> None:
        low, high = answer.highest_pass, answer.lowest_fail
        if low is not None and high is not None:
            axes.axhspan(low, high, color=shade(Colour.WORKING), alpha=0.14, linewidth=0, zorder=0)
        numbers = range(1, len(steps) + 1)
        axes.plot(numbers, [s.value for s in steps], color=shade(Colour.LIMIT), linewidth=0.8)
        handles = []
        for verdict, (marker, colour, word) in _LOOKS.items():
            found = [
                (n, s.value) for n, s in zip(numbers, steps, strict=True) if s.verdict == verdict
            ]
            if found:
                style: dict[str, Any] = {
                    "marker": marker,
                    "color": shade(colour),
                    "linestyle": "none",
                }
                axes.plot(*zip(*found, strict=True), **style, markersize=6, zorder=3)
                handles.append(Line2D([], [], **style, markersize=6, label=word))
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


# More cells than these are not told apart by their names under a figure.
_MOST_NAMED = 40
_SPREAD_ROW_INCHES = 0.24
_SPREAD_COLOURS: dict[Verdict, Colour] = {
    "pass": Colour.GOOD,
    "fail": Colour.FAILED,
    "inconclusive": Colour.INCONCLUSIVE,
}


def by_cell(records: Sequence[RunRecord], slo: Sequence[str]) -> list[Figure]:
    """Success and p95 of every step, a row a cell."""
    points = [(name_of_step(record, step), step) for record in records for step in record.steps]
    rows = numbered(name for name, _ in points)
    if len(rows) > _MOST_NAMED:
        return []
    success = _rows("Success", "success", rows, points, lambda step: step.success, slo, "success")
    p95 = _rows(
        "p95", "p95 of good answers", rows, points, lambda s: s.latency_seconds.p95, slo, "p95"
    )
    return [figure for figure in (success, p95) if figure]


def _rows(
    title: str,
    label: str,
    rows: dict[str, int],
    points: Sequence[tuple[str, Step]],
    of: Callable[[Step], float | None],
    slo: Sequence[str],
    key: str,
) -> Figure | None:
    known = [
        (rows[name], value, step.verdict)
        for name, step in points
        if (value := of(step)) is not None
    ]
    if not known:
        return None

    def draw(axes: Axes) -> None:
        for row, value, verdict in known:
            axes.plot([value], [row], "o", color=shade(_SPREAD_COLOURS[verdict]), alpha=0.75)
        for row in rows.values():
            if values := [value for place, value, _ in known if place == row]:
                axes.plot([median(values)], [row], "|", color=INK, markersize=13)
        axes.set_yticks(list(rows.values()), list(rows))
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel(label)
        for objective in map(parse_objective, slo):
            if objective.key == key:
                axes.axvline(objective.limit, zorder=1, **LIMIT_LINE)
        if key == "p95":
            log_seconds(axes, "x")
        else:
            axes.xaxis.set_major_formatter(lambda value, _: show_success(value))
            axes.locator_params(axis="x", nbins=5)
            width = max(0.05, 1.05 * (1 - min(value for _, value, _ in known)))
            axes.set_xlim(1 - width, 1 + width / 20)

    ordered = sorted(value for _, value, _ in known)
    shown = show_seconds if key == "p95" else show_success
    about = f"Of each run its {label}, a dot a repeat and a stroke at their median; the dashed line"
    about += f" is the objective. Between {shown(ordered[0])} and {shown(ordered[-1])}."
    return drawn(f"{title} by run", about, draw, height=1.1 + _SPREAD_ROW_INCHES * len(rows))


def predicted(records: Sequence[RunRecord]) -> list[Figure]:
    """Predicted beside measured, where records have a prediction."""
    held, good = [], []
    for record in records:
        told, found = record.prediction, checks(record)
        if told is None or not found:
            continue
        (step,), peak = record.steps, record.connections.established_peak
        if peak is not None:
            predicted_peak = told.established_least, told.established_peak, told.established_most
            held.append(_Told(*predicted_peak, peak, found[0].within))
        predicted_good = told.good_least, told.good, told.good_most
        good.append(_Told(*predicted_good, step.good, found[1].within))
    if not good:
        return []
    return [
        _diagonal("Connections, predicted and measured", "established connections", held),
        _diagonal("Good answers, predicted and measured", "good answers", good),
    ]


@dataclass(frozen=True)
class _Told:
    """A figure as it was predicted, with what its tolerance allows, and as it was measured."""

    least: float
    predicted: float
    most: float
    measured: float
    within: bool | None


def _diagonal(title: str, label: str, points: Sequence[_Told]) -> Figure:
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
