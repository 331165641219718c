"""Dashboard `compare`: which is better?"""

from collections.abc import Sequence

from grafana_foundation_sdk.builders import dashboard, table, timeseries
from grafana_foundation_sdk.models import dashboard as model

from grafana.src.board import HISTORY_TAG, new_dashboard
from grafana.src.panels.common import Text
from grafana.src.panels.curves import curves
from grafana.src.panels.graphs import graph
from grafana.src.panels.tables import rows_table
from grafana.src.queries import data_source
from grafana.src.signals import compare
from spikelab.signals import Signal, Source

NO_RUN = "Choose two to four runs above; they are listed when they have ended"
NO_SERIES = "Nothing in the time shown: choose runs above, zoom out, or Prometheus was away"
NO_STEP = "No step with an offered rate: choose runs of a rate, not of a spike"
GRAPH_HEIGHT = 7


def build() -> dashboard.Dashboard:
    """The dashboard: differences; the runs over each other; their steps over the rate."""
    board = (
        new_dashboard(
            "compare",
            "Compare: which is better?",
            "Two to four runs over each other; the time is hours:minutes:seconds since the load "
            "began. Two single runs can be set side by side: what is better, repeated runs tell.",
            tag=HISTORY_TAG,
            choices=(),
        )
        # Where run_series lies: seconds since the start are seconds since 1970.
        .time("1970-01-01T00:00:00.000Z", "1970-01-01T00:05:00.000Z")
        .timezone("utc")
        .refresh("")
        .with_variable(_runs())
        .with_variable(_base())
    )
    board.with_panel(_differences())
    for panel in _over_time():
        board.with_panel(panel)
    # Grafana 9 has words of its own for an empty curve, so the row says the cure.
    board.with_row(dashboard.Row("Over the rate (runs with an offered rate; a spike has none)"))
    for curve in _over_rate():
        board.with_panel(curve)
    board.with_panel(
        rows_table(
            Text(
                "What did each step give?",
                "Read a sweep from the top: the first step whose throughput stays below what was "
                "started is beyond the capacity, and a long drain is a queue it left behind.",
                NO_RUN,
            ),
            compare.STEPS,
            width=24,
            height=9,
        )
    )
    return board


def _differences() -> table.Panel:
    return rows_table(
        Text(
            "How do the runs differ?",
            "Rate and success: more is better; latency: less is. Two runs of the same thing differ "
            "too, often by a tenth and more: without a confidence, a ratio is no finding.",
            NO_RUN,
        ),
        compare.DIFFERENCES,
        width=24,
        height=6,
    )


def _over_time() -> list[timeseries.Panel]:
    return [
        _overlaid(
            Text(
                "How many requests a second ended?",
                "Curves that lie on each other are runs that went alike. One that falls where the "
                "others do not is a target that gave way.",
                NO_SERIES,
            ),
            compare.RATE,
        ),
        _overlaid(
            Text(
                "How long did good answers take (p95)?",
                "Each line on the scale is ten times the one before. A curve that rises while "
                "others are flat is a queue.",
                NO_SERIES,
            ),
            compare.LATENCY_P95,
            logarithmic=True,
        ),
        _overlaid(
            Text(
                "What share had a good answer?",
                "Below 100 % users saw errors. A point without an answer of any kind is left out.",
                NO_SERIES,
            ),
            compare.SUCCESS,
        ),
    ]


def _overlaid(
    text: Text, shown: Sequence[Signal], *, logarithmic: bool = False
) -> timeseries.Panel:
    """All four have one meaning, which is said once."""
    return (
        graph(text, shown, width=8, height=GRAPH_HEIGHT, logarithmic=logarithmic)
        .description(f"{text.reading}\n\nA curve a run: {shown[0].about}.")
        .fill_opacity(0)
    )


def _over_rate() -> list[dashboard.Panel]:
    return [
        curves(
            Text(
                "Throughput over the rate: where does it bend?",
                "A dot a step, a curve a variant. A target that keeps up lies on the diagonal; "
                "where the curve leaves it is its capacity.",
                NO_STEP,
            ),
            compare.THROUGHPUT_OVER_RATE,
            compare.STARTED,
            width=8,
            height=GRAPH_HEIGHT,
        ),
        curves(
            Text(
                "p95 over the rate: when does it rise?",
                "Each line on the scale is ten times the one before. The rise begins before the "
                "throughput bends.",
                NO_STEP,
            ),
            compare.P95_OVER_RATE,
            compare.STARTED,
            width=8,
            height=GRAPH_HEIGHT,
            logarithmic=True,
        ),
        curves(
            Text(
                "Success over the rate: when do requests fail?",
                "The last rate before a curve leaves 100 % is what holds without an error.",
                NO_STEP,
            ),
            compare.SUCCESS_OVER_RATE,
            compare.STARTED,
            width=8,
            height=GRAPH_HEIGHT,
        ),
    ]


def _runs() -> dashboard.QueryVariable:
    return (
        _choice("runs", "Runs", "Two to four runs, newest first.", compare.RUN_CHOICES)
        .multi(True)
        .current(model.VariableOption(text=[], value=[], selected=False))
    )


def _base() -> dashboard.QueryVariable:
    return _choice(
        "base", "Base", "The run that the others are compared with.", compare.BASE_CHOICES
    ).current(model.VariableOption(text="", value="", selected=False))


def _choice(name: str, label: str, about: str, query: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .description(about)
        .datasource(data_source(Source.INFLUXDB))
        .query(query)
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.DISABLED)
    )
