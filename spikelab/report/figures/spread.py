"""Runs that differ in something else than their rate: a dot a repeat, and measured beside what was
predicted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from matplotlib.axes import Axes

from spikelab.prediction.compare import checks
from spikelab.record import RunRecord, Step, Verdict
from spikelab.report import words
from spikelab.report.figures.style import (
    INK,
    LIMIT_LINE,
    Figure,
    curve,
    drawn,
    grouped,
    log_seconds,
    numbered,
    shade,
)
from spikelab.signals.core import Colour
from spikelab.slo import parse_objective

# More cells than these are not told apart by their names under a figure.
_MOST_NAMED = 40
_ROW_INCHES = 0.24
_COLOURS: dict[Verdict, Colour] = {
    "pass": Colour.GOOD,
    "fail": Colour.FAILED,
    "inconclusive": Colour.INCONCLUSIVE,
}


def by_cell(records: Sequence[RunRecord], slo: Sequence[str]) -> list[Figure]:
    """Success and p95 of every step, a row a cell."""
    points = [(words.cell_of(record, step), step) for record in records for step in record.steps]
    rows = numbered(name for name, _ in points)
    if len(rows) > _MOST_NAMED:
        return []
    success = _rows("Success", "success", rows, points, words.success, slo, "success")
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
            axes.plot([value], [row], "o", color=shade(_COLOURS[verdict]), alpha=0.75)
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
            axes.xaxis.set_major_formatter(lambda value, _: words.share(value))
            axes.locator_params(axis="x", nbins=5)
            width = max(0.05, 1.05 * (1 - min(value for _, value, _ in known)))
            axes.set_xlim(1 - width, 1 + width / 20)

    ordered = sorted(value for _, value, _ in known)
    shown = words.seconds if key == "p95" else words.share
    about = f"Of each run its {label}, a dot a repeat and a stroke at their median; the dashed line"
    about += f" is the objective. Between {shown(ordered[0])} and {shown(ordered[-1])}."
    return drawn(f"{title} by run", about, draw, height=1.1 + _ROW_INCHES * len(rows))


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
        good.append(_Told(*predicted_good, step.requests - step.failures, found[1].within))
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
