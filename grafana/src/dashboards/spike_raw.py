"""Dashboard `spike-raw`: what became of each request?"""

from grafana_foundation_sdk.builders import dashboard, stat, table, timeseries
from grafana_foundation_sdk.models import dashboard as model

from grafana.src.board import new_dashboard
from grafana.src.panels.common import Text
from grafana.src.panels.figures import figures
from grafana.src.panels.graphs import graph, scatter, with_other_store
from grafana.src.panels.tables import rows
from grafana.src.signals import raw
from spikelab.signals import Colour

NO_RAW = "No raw samples: run with --sink influxdb, or k6 run --out influxdb=…"
NO_CONNECTION = "No connection opened in the time shown, or no raw samples (--sink influxdb)"
NO_PAIR = "No run in both stores; a bare k6 run has nothing to be compared with"
WIDTH = 8
FIGURE_HEIGHT = 3
CLOUD_HEIGHT = 8
GRAPH_HEIGHT = 6


def build() -> dashboard.Dashboard:
    """The dashboard: figures; each request; whether all are here; where their time went."""
    board = new_dashboard(
        "spike-raw",
        "Spike: what became of each request?",
        "Every single request of a run that wrote raw samples to InfluxDB, the lab's or k6's own.",
    )
    for panel in [
        *_figures(),
        _cloud(),
        _outcomes(),
        _totals(),
        _gaps(),
        _missing(),
        *_where_the_time_went(),
        _users(),
    ]:
        board.with_panel(panel)
    return board


def _figures() -> list[stat.Panel]:
    return [
        figures(
            Text("Requests", "Of the time, phase and request shown.", NO_RAW),
            [raw.RAW_STORED, raw.RAW_FAILED],
            width=7,
            height=FIGURE_HEIGHT,
        ),
        figures(
            Text(
                "Exact percentiles of good answers",
                "Of every single sample, without buckets, so without a bucket's error. Far apart: "
                "some users wait and others do not. With few requests the highest are one request.",
                NO_RAW,
            ),
            raw.RAW_PERCENTILES,
            width=17,
            height=FIGURE_HEIGHT,
        ),
    ]


def _cloud() -> timeseries.Panel:
    return scatter(
        Text(
            "When was each request answered, and how long did it take?",
            "A step of points is a wave: workers that finish together, while the next users wait "
            "their turn. On a rising line all began together; a flat one is a target that keeps "
            f"up. Up to {raw.MOST_POINTS:,} of each colour are drawn, all there are; of more a "
            "random choice, another one at each refresh, in which waves and shares stay true.",
            NO_RAW,
        ),
        raw.RAW_DURATIONS,
        width=2 * WIDTH,
        height=CLOUD_HEIGHT,
    )


def _outcomes() -> table.Panel:
    columns = {"requests": "Requests", "status": "Status", "error_code": "Meaning"}
    meanings = {
        code: model.ValueMappingResult(text=f"{meaning} ({code})", index=place)
        for place, (code, meaning) in enumerate(raw.ERROR_CODES.items())
    }
    by_status = model.RegexMap(
        options=model.DashboardRegexMapOptions(
            pattern="^1([45]..)$", result=model.ValueMappingResult(text="answered with status $1")
        )
    )
    no_error = model.SpecialValueMap(
        options=model.DashboardSpecialValueMapOptions(
            match=model.SpecialValueMatch.EMPTY,
            result=model.ValueMappingResult(text="as expected", color=Colour.GOOD),
        )
    )
    mappings = [model.ValueMap(options=meanings), by_status, no_error]
    return (
        rows(
            Text(
                "How did the requests end?",
                "Status 0: no answer. No connection in time is a target without room, no answer in "
                "time one without a worker; a reset is a target that was stopped or sheds load. "
                "In brackets k6's own error code.",
                NO_RAW,
            ),
            [raw.RAW_OUTCOMES],
            columns,
            width=WIDTH,
            height=CLOUD_HEIGHT,
        )
        .override_by_name("Meaning", [model.DynamicConfigValue("mappings", mappings)])
        .override_by_name("Requests", [model.DynamicConfigValue("custom.width", 90)])
        .override_by_name("Status", [model.DynamicConfigValue("custom.width", 70)])
    )


def _totals() -> timeseries.Panel:
    panel = graph(
        Text(
            "Does InfluxDB hold what Prometheus counted?",
            "Added up since the left edge; each step is a wave. The dashed line follows a second "
            "or two later, for a request is counted when it is pushed. Where it rises above the "
            "other and stays there, samples are missing, or a run wrote none: choose one run.",
            NO_RAW,
        ),
        [raw.STORED_SO_FAR, raw.FAILED_SO_FAR],
        width=WIDTH,
        height=GRAPH_HEIGHT,
    )
    return with_other_store(panel, raw.COUNTED_SO_FAR, "C")


def _gaps() -> timeseries.Panel:
    return graph(
        Text(
            "Where are holes in the raw samples?",
            "About 1 s while a run goes. A point higher up ends a hole of that length: k6 could "
            "not write, and it does not try again. Then all figures here lack these requests. Two "
            "bare runs look like one with a hole between them, for neither has a testid.",
            NO_RAW,
        ),
        [raw.SAMPLE_GAP],
        width=WIDTH,
        height=GRAPH_HEIGHT,
    )


def _missing() -> table.Panel:
    columns = {"testid": "Run", "counted": "Counted", "stored": "Stored", "missing": "Missing"}
    difference = {
        "mode": "binary",
        "alias": "missing",
        "binary": {"left": "counted", "operator": "-", "reducer": "sum", "right": "stored"},
    }
    steps: dict[str, object] = {
        # Grafana calls the column Value, or Value and the query's letter.
        "renameByRegex": {"regex": "^Value.*$", "renamePattern": "counted"},
        "joinByField": {"byField": "testid", "mode": "inner"},
        "calculateField": difference,
    }
    return rows(
        Text(
            "Are raw samples missing?",
            "Of runs that are in both stores, in the time shown. Not 0: percentiles and points are "
            "of the rest; while a run goes, or where the time shown cuts one, some are under way.",
            NO_PAIR,
        ),
        [raw.COUNTED_BY_RUN, raw.STORED_BY_RUN],
        columns,
        width=WIDTH,
        height=GRAPH_HEIGHT,
        transformations=[
            model.DataTransformerConfig(id_val=name, options=options)
            for name, options in steps.items()
        ],
    ).override_by_regexp("Counted|Stored|Missing", [model.DynamicConfigValue("custom.width", 75)])


def _where_the_time_went() -> list[timeseries.Panel]:
    return [
        scatter(
            Text(
                "How long did connections take?",
                "Near 0 where there is room. Bands at 1, 2, 3 … s are attempts that the target "
                "turned away: the client's kernel tried again. Of more than "
                f"{raw.MOST_POINTS:,} a random choice is drawn.",
                NO_CONNECTION,
            ),
            raw.RAW_CONNECTING,
            width=6,
            height=GRAPH_HEIGHT,
        ),
        graph(
            Text(
                "Where did the time go?",
                "Means of good answers, stacked, for means add up and percentiles do not. The wait "
                "for the first byte holds the target's queues; a connection is waited for where "
                "the target has no room.",
                NO_RAW,
            ),
            raw.RAW_PARTS,
            width=6,
            height=GRAPH_HEIGHT,
            stacked=True,
        ),
        graph(
            Text(
                "How long do raw good answers take?",
                "Exact percentiles of each step's samples. Steps upward are waves.",
                NO_RAW,
            ),
            raw.RAW_LATENCY,
            width=6,
            height=GRAPH_HEIGHT,
        ),
    ]


def _users() -> timeseries.Panel:
    return graph(
        Text(
            "How many users were running?",
            "In a spike each user leaves with its answer. A line that stays up is users who wait.",
            NO_RAW,
        ),
        [raw.RAW_USERS],
        width=6,
        height=GRAPH_HEIGHT,
    )
