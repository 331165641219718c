"""Panels, variables, annotations and links in the lab's one style, made from signals.

A panel's description is how to read it, followed by what each of its signals means.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    heatmap,
    prometheus,
    stat,
    table,
    timeseries,
)
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import heatmap as heatmap_model
from grafana_foundation_sdk.models import prometheus as prometheus_model

import signals
from signals import Colour, Signal, Source, Unit

TAG = "spikelab"
# A wave of answers every few seconds is one curve, a pause of this length is a gap.
LONGEST_BRIDGED_GAP_MS = 10_000


class InfluxQuery(Dataquery):
    """An InfluxQL query as Grafana stores it; the SDK has none for this data source."""

    def __init__(self, ref_id: str, query: str, alias: str) -> None:
        self.ref_id = ref_id
        self.query = query
        self.alias = alias

    def to_json(self) -> dict[str, object]:
        """The target object of a panel."""
        return {
            "refId": self.ref_id,
            "datasource": data_source(Source.INFLUXDB),
            "query": self.query,
            "alias": self.alias,
            "rawQuery": True,
            "resultFormat": "time_series",
        }


class InfluxQueryBuilder(Builder[Dataquery]):
    """Gives an `InfluxQuery` to a panel builder."""

    def __init__(self, query: InfluxQuery) -> None:
        self._query = query

    def build(self) -> Dataquery:
        """The query itself."""
        return self._query


class StoredAnnotation(model.AnnotationQuery):
    """An annotation from a store's query; the SDK has only Grafana's own kind.

    `options` are the fields that its data source's annotation editor writes.
    """

    def __init__(
        self, name: str, source: Source, colour: Colour, options: dict[str, object]
    ) -> None:
        super().__init__(
            name=name, datasource=data_source(source), icon_color=colour, built_in=None
        )
        self._options = options

    def to_json(self) -> dict[str, object]:
        """The SDK's own fields and the data source's."""
        return {**super().to_json(), **self._options}


class AnnotationBuilder(Builder[model.AnnotationQuery]):
    """Gives a `StoredAnnotation` to the dashboard builder."""

    def __init__(self, annotation: StoredAnnotation) -> None:
        self._annotation = annotation

    def build(self) -> model.AnnotationQuery:
        """The annotation itself."""
        return self._annotation


@dataclass(frozen=True)
class Text:
    """The words of a panel: its title, how to read it, and what to do when it is empty."""

    title: str
    reading: str
    no_data: str


def data_source(source: Source) -> model.DataSourceRef:
    """The reference to a store: type and uid have the same name here."""
    return model.DataSourceRef(type_val=source, uid=source)


def _description(text: Text, shown: Sequence[Signal]) -> str:
    meanings = [f"- **{_legend_name(signal)}**: {signal.about}" for signal in shown]
    return "\n".join([text.reading, "", *meanings])


def _legend_name(signal: Signal) -> str:
    """The legend without its labels."""
    return signal.title.split(" ({{")[0]


def _source(shown: Sequence[Signal]) -> Source:
    (source,) = {source for signal in shown for source in signal.expressions}
    return source


def _query(signal: Signal, ref_id: str) -> Builder[Dataquery]:
    if Source.INFLUXDB in signal.expressions:
        query = InfluxQuery(ref_id, signal.expressions[Source.INFLUXDB], signal.title)
        return InfluxQueryBuilder(query)
    return _prometheus_query(signal, ref_id).range()


def _prometheus_query(signal: Signal, ref_id: str) -> prometheus.Dataquery:
    return (
        prometheus.Dataquery()
        .ref_id(ref_id)
        .datasource(data_source(Source.PROMETHEUS))
        .expr(signal.expressions[Source.PROMETHEUS])
        .legend_format(signal.title)
        .editor_mode(prometheus_model.QueryEditorMode.CODE)
    )


def _slowest(shown: Sequence[Signal]) -> str:
    """The panel's shortest step: that of the signal measured least often."""
    return max(signal.every for signal in shown)


def _style(signal: Signal) -> list[model.DynamicConfigValue]:
    properties = [
        model.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": signal.colour}),
    ]
    if signal.limit:
        dashed = {"fill": "dash", "dash": [8, 6]}
        properties += [
            model.DynamicConfigValue("custom.lineStyle", dashed),
            model.DynamicConfigValue("custom.lineWidth", 1),
            model.DynamicConfigValue("custom.fillOpacity", 0),
            # A limit does not change gradually while its target restarts.
            model.DynamicConfigValue("custom.spanNulls", False),
            model.DynamicConfigValue("custom.stacking", {"mode": "none", "group": "A"}),
        ]
    return properties


def graph(
    text: Text, shown: Sequence[Signal], *, width: int, height: int, stacked: bool = False
) -> timeseries.Panel:
    """Signals of one unit over time; `width` and `height` in grid cells (24 columns)."""
    (unit,) = {signal.unit for signal in shown}
    panel = (
        timeseries.Panel()
        .title(text.title)
        .description(_description(text, shown))
        .no_value(text.no_data)
        .datasource(data_source(_source(shown)))
        .span(width)
        .height(height)
        .interval(_slowest(shown))
        .unit(unit)
        .min(0)
        .line_width(0 if stacked else 1)
        .fill_opacity(60 if stacked else 10)
        .show_points(common_model.VisibilityMode.AUTO)
        .point_size(4)
        .span_nulls(LONGEST_BRIDGED_GAP_MS)
        .legend(
            common.VizLegendOptions()
            .display_mode(common_model.LegendDisplayMode.LIST)
            .placement(common_model.LegendPlacement.BOTTOM)
            .show_legend(True)
            .calcs([])
        )
        .tooltip(
            common.VizTooltipOptions()
            .mode(common_model.TooltipDisplayMode.MULTI)
            .sort(common_model.SortOrder.DESCENDING)
        )
    )
    if unit is Unit.SHARE:
        panel.axis_soft_max(1)
    if stacked:
        panel.stacking(common.StackingConfig().mode(common_model.StackingMode.NORMAL).group("A"))
    for ref_id, signal in zip(ascii_uppercase, shown, strict=False):
        panel.with_target(_query(signal, ref_id))
        panel.override_by_query(ref_id, _style(signal))
    return panel


def number(text: Text, signal: Signal, *, width: int, height: int) -> stat.Panel:
    """One figure for the time shown; of what should not happen, 0 is good."""
    alarming = signal.colour in {Colour.FAILED, Colour.TURNED_AWAY}
    colours = [
        model.Threshold(value=None, color=Colour.GOOD if alarming else signal.colour),
        model.Threshold(value=1, color=signal.colour),
    ]
    return (
        stat.Panel()
        .title(text.title)
        .description(_description(text, [signal]))
        .no_value(text.no_data)
        .datasource(data_source(Source.PROMETHEUS))
        .span(width)
        .height(height)
        .interval(signal.every)
        .unit(signal.unit)
        .graph_mode(common_model.BigValueGraphMode.NONE)
        .color_mode(common_model.BigValueColorMode.VALUE)
        .text_mode(common_model.BigValueTextMode.VALUE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .color_scheme(dashboard.FieldColor().mode(model.FieldColorModeId.THRESHOLDS))
        .thresholds(dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(colours))
        .with_target(_prometheus_query(signal, "A").instant())
    )


def distribution(text: Text, signal: Signal, *, width: int, height: int) -> heatmap.Panel:
    """A native histogram over time: one column a step, one row a bucket."""
    return (
        heatmap.Panel()
        .title(text.title)
        .description(_description(text, [signal]))
        .no_value(text.no_data)
        .datasource(data_source(Source.PROMETHEUS))
        .span(width)
        .height(height)
        .interval("2s")
        .calculate(False)
        .cell_gap(0)
        .color(
            heatmap.HeatmapColorOptions()
            .mode(heatmap_model.HeatmapColorMode.SCHEME)
            .scheme("Purples")
            .scale(heatmap_model.HeatmapColorScale.EXPONENTIAL)
            .exponent(0.5)
            .steps(32)
            .fill(signal.colour)
        )
        .y_axis(heatmap.YAxisConfig().unit(signal.unit))
        .hide_legend()
        .hide_y_histogram()
        # Not the format "heatmap": Grafana 9 takes it for classic buckets and shows one row.
        .with_target(_prometheus_query(signal, "A").range())
    )


def settings_table(text: Text, signal: Signal) -> table.Panel:
    """The present value of a signal by its label `name`, a row each."""
    columns = model.DataTransformerConfig(
        id_val="organize",
        options={
            "excludeByName": {"Time": True},
            "indexByName": {"name": 0, "Value": 1, "target": 2},
            "renameByName": {"target": "Target", "name": "Setting", "Value": "Effective"},
        },
    )
    return (
        table.Panel()
        .title(text.title)
        .description(_description(text, [signal]))
        .no_value(text.no_data)
        .datasource(data_source(Source.PROMETHEUS))
        .interval(signal.every)
        .unit(signal.unit)
        .show_header(True)
        .cell_height(common_model.TableCellHeight.SM)
        .with_target(
            _prometheus_query(signal, "A").instant().format(prometheus_model.PromQueryFormat.TABLE)
        )
        .with_transformation(columns)
        .sort_by([common.TableSortByFieldState().display_name("Setting").desc(False)])
        .override_by_name("Setting", [model.DynamicConfigValue("custom.width", 300)])
    )


def _choice(name: str, label: str, about: str, query: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .description(about)
        .datasource(data_source(Source.PROMETHEUS))
        .query({"query": query, "refId": f"variable-{name}"})
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_DESC)
        .include_all(True)
        .all_value(".*")
        .current(model.VariableOption(text="All", value="$__all", selected=True))
    )


def variables() -> list[dashboard.QueryVariable]:
    """The choices every dashboard offers, so that links between them keep all of them.

    "All" follows whatever runs now: the lab runs one test at a time, so runs never overlap.
    """
    return [
        _choice(
            "testid",
            "Run",
            "A run, newest first; All follows the one that is live.",
            "label_values(loadtest:requests:total, testid)",
        ),
        _choice(
            "driver",
            "Driver",
            "The load generator.",
            "label_values(loadtest:requests:total, driver)",
        ),
        _choice(
            "target", "Target", "The server under load.", "label_values(tomcat_setting, target)"
        ),
    ]


def annotations() -> list[StoredAnnotation]:
    """Phases of the run as regions, and changes of the target's settings as lines."""
    return [
        StoredAnnotation(
            "Phases",
            Source.INFLUXDB,
            signals.PHASES.colour,
            {
                "query": signals.PHASES.expressions[Source.INFLUXDB],
                "titleColumn": "title",
                "textColumn": "text",
                "tagsColumn": "tags",
                "timeEndColumn": "timeEnd",
            },
        ),
        StoredAnnotation(
            "Setting changes",
            Source.PROMETHEUS,
            signals.SETTING_CHANGE.colour,
            {
                "expr": signals.SETTING_CHANGE.expressions[Source.PROMETHEUS],
                "step": signals.SETTING_CHANGE.every,
                "titleFormat": "Setting changed",
                "textFormat": signals.SETTING_CHANGE.title,
                "tagKeys": "target",
            },
        ),
    ]


def new_dashboard(uid: str, title: str, about: str) -> dashboard.Dashboard:
    """An empty dashboard with the lab's variables, annotations, links and time settings."""
    board = (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(about)
        .tags([TAG])
        .timezone("browser")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .time("now-15m", "now")
        .refresh("5s")
        .timepicker(
            dashboard.TimePicker().refresh_intervals(["1s", "2s", "5s", "10s", "30s", "1m", "5m"])
        )
        .link(
            dashboard.DashboardLink("Spikelab")
            .type(model.DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .include_vars(True)
            .keep_time(True)
        )
    )
    for variable in variables():
        board.with_variable(variable)
    for annotation in annotations():
        board.annotation(AnnotationBuilder(annotation))
    return board
