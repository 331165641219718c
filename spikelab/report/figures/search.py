"""A capacity search: each step's rate and verdict in order, and where the answer lies."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from spikelab.experiments.capacity_answer import CapacityAnswer
from spikelab.record import Verdict
from spikelab.report.figures.style import Figure, drawn, grouped, legend_above, shade
from spikelab.signals.core import Colour

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
