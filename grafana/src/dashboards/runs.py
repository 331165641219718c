"""Dashboard `runs`: what has been tried?"""

from grafana_foundation_sdk.builders import common, dashboard, timeseries
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model

from grafana.src.board import HISTORY_TAG, new_dashboard
from grafana.src.panels.common import Text
from grafana.src.panels.graphs import graph
from grafana.src.panels.tables import rows_table
from grafana.src.queries import data_source
from grafana.src.signals import runs
from spikelab.signals import Signal, Source

NO_RUN = "No run has ended in the time shown: ./lab run PLAN, or widen the time range"
TABLE_HEIGHT = 12
TREND_HEIGHT = 6
ITS_RUN = "var-testid=${__data.fields.Run}&from=${__data.fields.from}&to=${__data.fields.to}"
LINKS = (
    ("Its load test", f"/d/load-test?{ITS_RUN}"),
    ("Its Tomcat", f"/d/tomcat?{ITS_RUN}"),
    (
        "Compare it with others",
        "/d/compare?var-runs=${__data.fields.Run}&from=0&to=${__data.fields.length}",
    ),
)


def build() -> dashboard.Dashboard:
    """The dashboard: all runs as a table; how their figures went on."""
    board = (
        new_dashboard(
            "runs",
            "Runs: what has been tried?",
            "Every run that has ended, with what it ran on and what came of it.",
            tag=HISTORY_TAG,
            choices=("driver",),
        )
        .time("now-7d", "now")
        .refresh("1m")
        .with_variable(_plan())
    )
    board.with_panel(
        rows_table(
            Text(
                "Which runs were there, and what came of them?",
                "Click a start or a testid to see that run's own time. Compare runs only where the "
                "same thing was run; a single one decides nothing.",
                NO_RUN,
            ),
            runs.ALL_RUNS,
            width=24,
            height=TABLE_HEIGHT,
            links={"Started": LINKS, "Run": LINKS},
        )
    )
    board.with_panel(
        _trend(
            Text(
                "Does a plan's p95 change from run to run?",
                "A dot a valid run, on a scale of tens: choose one plan above. Dots of one plan "
                "lie apart also when nothing has changed; a trend is more than that.",
                NO_RUN,
            ),
            runs.P95_OVER_TIME,
            logarithmic=True,
        )
    )
    board.with_panel(
        _trend(
            Text(
                "Does a plan's rate change from run to run?",
                "A dot a valid run: choose one plan above. In an open loop it is the rate that was "
                "asked for as long as it is held, in a closed loop what the target gives.",
                NO_RUN,
            ),
            runs.RATE_OVER_TIME,
        )
    )
    return board


def _trend(text: Text, signal: Signal, *, logarithmic: bool = False) -> timeseries.Panel:
    return (
        graph(text, [signal], width=12, height=TREND_HEIGHT, logarithmic=logarithmic)
        .draw_style(common_model.GraphDrawStyle.POINTS)
        .point_size(7)
        .legend(common.VizLegendOptions().show_legend(False).calcs([]))
    )


def _plan() -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable("plan")
        .label("Plan")
        .description("What was run.")
        .datasource(data_source(Source.INFLUXDB))
        .query('SHOW TAG VALUES FROM "runs" WITH KEY = "plan" WHERE $timeFilter')
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
        .include_all(True)
        .all_value(".*")
        .current(model.VariableOption(text="All", value="$__all", selected=True))
    )
