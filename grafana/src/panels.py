"""Panels in the lab's one style, made from signals.

A panel's description is how to read it, followed by what each of its signals means.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    heatmap,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.builders import text as text_panel
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import heatmap as heatmap_model
from grafana_foundation_sdk.models import prometheus as prometheus_model
from grafana_foundation_sdk.models import text as text_model

from grafana.src.queries import (
    InfluxQuery,
    InfluxQueryBuilder,
    data_source,
    prometheus_query,
    query_of,
    source,
)
from spikelab.signals.core import Colour, Signal, Source, Unit
from spikelab.units import parse_duration

# A wave of answers every few seconds is one curve, a pause of this length is a gap.
LONGEST_BRIDGED_GAP_MS = 10_000


# Grafana 9 writes the no-data message beside each line of a logarithmic scale that has no number.
_UNNAMED = [model.DynamicConfigValue("noValue", "")]


@dataclass(frozen=True)
class Text:
    """The words of a panel: its title, how to read it, and what to do when it is empty."""

    title: str
    reading: str
    no_data: str


def _description(text: Text, shown: Sequence[Signal]) -> str:
    meanings = [f"- **{_legend_name(signal)}**: {signal.about}" for signal in shown]
    return "\n".join([text.reading, "", *meanings])


def _legend_name(signal: Signal) -> str:
    """The legend without its labels."""
    return signal.title.split(" ({{")[0]


def _slowest(shown: Sequence[Signal]) -> str:
    """The panel's shortest step: that of the signal measured least often."""
    return max((signal.every for signal in shown), key=parse_duration)


def _fixed(colour: Colour) -> model.DynamicConfigValue:
    return model.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})


def _style(signal: Signal) -> list[model.DynamicConfigValue]:
    properties = [_fixed(signal.colour)]
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
    text: Text,
    shown: Sequence[Signal],
    *,
    width: int,
    height: int,
    stacked: bool = False,
    logarithmic: bool = False,
) -> timeseries.Panel:
    """Signals of one unit over time; `width` and `height` in grid cells (24 columns)."""
    (unit,) = {signal.unit for signal in shown}
    panel = (
        timeseries.Panel()
        .title(text.title)
        .description(_description(text, shown))
        .no_value(text.no_data)
        .datasource(data_source(source(shown)))
        .span(width)
        .height(height)
        .interval(_slowest(shown))
        .unit(unit)
        .line_width(0 if stacked else 1)
        .fill_opacity(60 if stacked else 0 if logarithmic else 10)
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
    if logarithmic:
        scale = common_model.ScaleDistribution.LOG
        panel.scale_distribution(common.ScaleDistributionConfig().type(scale).log(10))
    else:
        panel.min(0)
    if unit is Unit.SHARE:
        panel.axis_soft_max(1)
    if stacked:
        panel.stacking(common.StackingConfig().mode(common_model.StackingMode.NORMAL).group("A"))
    for ref_id, signal in zip(ascii_uppercase, shown, strict=False):
        panel.with_target(query_of(signal, ref_id))
        panel.override_by_query(
            ref_id, [*_style(signal), *_UNNAMED] if logarithmic else _style(signal)
        )
        for legend, colour in signal.colours.items():
            panel.override_by_name(legend, [_fixed(colour)])
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
        .with_target(prometheus_query(signal, "A").instant())
    )


def state(text: Text, signal: Signal, states: Mapping[int, tuple[str, Colour]]) -> stat.Panel:
    """A value that has a name, in words."""
    names = {
        str(value): model.ValueMappingResult(text=name, color=colour, index=place)
        for place, (value, (name, colour)) in enumerate(states.items())
    }
    return number(text, signal, width=4, height=3).mappings([model.ValueMap(options=names)])


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
        .with_target(prometheus_query(signal, "A").range())
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
            prometheus_query(signal, "A").instant().format(prometheus_model.PromQueryFormat.TABLE)
        )
        .with_transformation(columns)
        .sort_by([common.TableSortByFieldState().display_name("Setting").desc(False)])
        .override_by_name("Setting", [model.DynamicConfigValue("custom.width", 350)])
    )


class _TableQuery(InfluxQuery):
    """Rows as they are stored, instead of a series."""

    def to_json(self) -> dict[str, object]:
        return {**super().to_json(), "resultFormat": "table"}


# A panel with queries of both stores names none.
MIXED = model.DataSourceRef(type_val="datasource", uid="-- Mixed --")


def with_other_store(panel: timeseries.Panel, signal: Signal, ref_id: str) -> timeseries.Panel:
    """Adds a signal that the other store has; the panel's own text says what it is."""
    panel.datasource(MIXED).with_target(query_of(signal, ref_id))
    return panel.override_by_query(ref_id, _style(signal))


def scatter(text: Text, signal: Signal, *, width: int, height: int) -> timeseries.Panel:
    """A point a sample of InfluxDB, in the colour of its column (the signal's `colours`)."""
    panel = (
        timeseries.Panel()
        .title(text.title)
        .description(_description(text, [signal]))
        .no_value(text.no_data)
        .datasource(data_source(Source.INFLUXDB))
        .span(width)
        .height(height)
        .unit(signal.unit)
        .min(0)
        .draw_style(common_model.GraphDrawStyle.POINTS)
        .show_points(common_model.VisibilityMode.ALWAYS)
        .point_size(4)
        .legend(
            common.VizLegendOptions()
            .display_mode(common_model.LegendDisplayMode.LIST)
            .placement(common_model.LegendPlacement.BOTTOM)
            .show_legend(True)
            .calcs([])
        )
        .tooltip(common.VizTooltipOptions().mode(common_model.TooltipDisplayMode.SINGLE))
        .with_target(_table_query(signal, "A"))
    )
    for column, colour in signal.colours.items():
        panel.override_by_name(column, [_fixed(colour)])
    return panel


def figures(text: Text, shown: Sequence[Signal], *, width: int, height: int) -> stat.Panel:
    """Figures of InfluxDB side by side, one a signal; of what should not happen, 0 is good."""
    panel = (
        stat.Panel()
        .title(text.title)
        .description(_description(text, shown))
        .no_value(text.no_data)
        .datasource(data_source(source(shown)))
        .span(width)
        .height(height)
        .unit(shown[0].unit)
        .graph_mode(common_model.BigValueGraphMode.NONE)
        .color_mode(common_model.BigValueColorMode.VALUE)
        .text_mode(common_model.BigValueTextMode.VALUE_AND_NAME)
        .orientation(common_model.VizOrientation.VERTICAL)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    )
    for ref_id, signal in zip(ascii_uppercase, shown, strict=False):
        panel.with_target(query_of(signal, ref_id))
        panel.override_by_query(ref_id, _alarming(signal))
    return panel


def _alarming(signal: Signal) -> list[model.DynamicConfigValue]:
    """The colour of a figure: fixed, or good while a thing that should not happen has not."""
    if signal.colour not in {Colour.FAILED, Colour.TURNED_AWAY}:
        return [_fixed(signal.colour)]
    steps = [{"value": None, "color": Colour.GOOD}, {"value": 1, "color": signal.colour}]
    return [
        model.DynamicConfigValue("color", {"mode": "thresholds"}),
        model.DynamicConfigValue("thresholds", {"mode": "absolute", "steps": steps}),
    ]


def rows(
    text: Text,
    shown: Sequence[Signal],
    columns: Mapping[str, str],
    *,
    width: int,
    height: int,
    transformations: Sequence[model.DataTransformerConfig] = (),
) -> table.Panel:
    """A row a series, with the fields in `columns` under their headings, in this order."""
    stores = {store for signal in shown for store in signal.expressions}
    panel = (
        table.Panel()
        .title(text.title)
        .description(_description(text, shown))
        .no_value(text.no_data)
        .datasource(data_source(source(shown)) if len(stores) == 1 else MIXED)
        .span(width)
        .height(height)
        .unit(shown[0].unit)
        .show_header(True)
        .cell_height(common_model.TableCellHeight.SM)
    )
    for ref_id, signal in zip(ascii_uppercase, shown, strict=False):
        panel.with_target(_table_query(signal, ref_id))
    order = {name: place for place, name in enumerate(columns)}
    for transformation in [
        *transformations,
        model.DataTransformerConfig(
            id_val="filterFieldsByName", options={"include": {"names": [*columns]}}
        ),
        model.DataTransformerConfig(
            id_val="organize", options={"indexByName": order, "renameByName": columns}
        ),
    ]:
        panel.with_transformation(transformation)
    return panel


def _table_query(signal: Signal, ref_id: str) -> Builder[Dataquery]:
    if Source.INFLUXDB in signal.expressions:
        query = _TableQuery(ref_id, signal.expressions[Source.INFLUXDB], signal.title)
        return InfluxQueryBuilder(query)
    asked = prometheus_query(signal, ref_id).instant()
    return asked.format(prometheus_model.PromQueryFormat.TABLE)


def timeline(
    text: Text,
    signal: Signal,
    states: Mapping[int, tuple[str, Colour]],
    *,
    width: int,
    height: int,
) -> statetimeline.Panel:
    """A row a series, whose values have names; a gap is a time without a value."""
    names = {
        str(value): model.ValueMappingResult(text=name, color=colour, index=place)
        for place, (value, (name, colour)) in enumerate(states.items())
    }
    # A timeline draws its rows by thresholds, and its tooltip by names.
    steps = [
        model.Threshold(value=value if place else None, color=states[value][1])
        for place, value in enumerate(sorted(states))
    ]
    return (
        statetimeline.Panel()
        .title(text.title)
        .description(_description(text, [signal]))
        .no_value(text.no_data)
        .datasource(data_source(Source.PROMETHEUS))
        .span(width)
        .height(height)
        .interval(signal.every)
        .unit(signal.unit)
        .mappings([model.ValueMap(options=names)])
        .color_scheme(dashboard.FieldColor().mode(model.FieldColorModeId.THRESHOLDS))
        .thresholds(dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps))
        .show_value(common_model.VisibilityMode.NEVER)
        .merge_values(True)
        .fill_opacity(70)
        .line_width(0)
        .row_height(0.8)
        .legend(
            common.VizLegendOptions()
            .display_mode(common_model.LegendDisplayMode.LIST)
            .placement(common_model.LegendPlacement.BOTTOM)
            .show_legend(False)
            .calcs([])
        )
        .with_target(query_of(signal, "A"))
    )


def words(title: str, about: str, content: str, *, width: int, height: int) -> text_panel.Panel:
    """Text in Markdown."""
    return (
        text_panel.Panel()
        .title(title)
        .description(about)
        .span(width)
        .height(height)
        .mode(text_model.TextMode.MARKDOWN)
        .content(content)
    )
