"""A comparison: ratios with their intervals and the margin, and each pair of runs."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from spikelab.comparison.model import ComparisonRecord, Result
from spikelab.comparison.places import show
from spikelab.comparison.sentences import called, label
from spikelab.report import words
from spikelab.report.figures.style import (
    INK,
    Figure,
    curve,
    drawn,
    grouped,
    log_seconds,
    shade,
)
from spikelab.signals.core import Colour

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
    return " ".join(filter(None, [label(result.metric), show(result.place)]))


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
        f"{called(record.b, record.a)} is higher in {higher} of {words.plural(len(pairs), 'pair')}."
    )
    return drawn("Pairs of runs", about, draw)


def _scale(axes: Axes, result: Result, pairs: Sequence[tuple[float, float]]) -> None:
    if result.unit == "s" and min(min(pair) for pair in pairs) > 0:
        log_seconds(axes)
    elif result.unit == "share":
        axes.yaxis.set_major_formatter(lambda value, _: f"{value * 100:.3g} %")
    else:
        grouped(axes, "y")
