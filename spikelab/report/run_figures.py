"""Figures of one run: latency, rates and queues by seconds since its load began, latency by
percentile; and failures by class, of one run or several."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from spikelab import signals
from spikelab.report.style import (
    Figure,
    curve,
    drawn,
    grouped,
    legend_above,
    log_seconds,
    shade,
)
from spikelab.results.run import Errors, RunRecord, Step
from spikelab.series import RATES, Series
from spikelab.signals import Colour, Signal
from spikelab.units import show_count, show_seconds

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
_MOST_ABOVE = 3.0
_LATENCY_LABEL = "latency of good answers"


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
    total: Counter[str] = Counter()
    for step in steps:
        total.update(step.errors.by_class())
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
        axes.set_ylabel(_LATENCY_LABEL)
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
        axes.set_ylabel(_LATENCY_LABEL)

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
    if limit > _MOST_ABOVE * held:
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
