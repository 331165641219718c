"""Panels in the lab's one style, made from signals.

A panel's description is how to read it, followed by what each of its signals means.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    heatmap,
    stat,
    table,
    timeseries,
)
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import heatmap as heatmap_model
from grafana_foundation_sdk.models import prometheus as prometheus_model

from grafana.src.queries import data_source, prometheus_query, query_of, source
from spikelab.signals.core import Colour, Signal, Source, Unit

# A wave of answers every few seconds is one curve, a pause of this length is a gap.
LONGEST_BRIDGED_GAP_MS = 10_000


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
        .datasource(data_source(source(shown)))
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
        panel.with_target(query_of(signal, ref_id))
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
        .with_target(prometheus_query(signal, "A").instant())
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
        .override_by_name("Setting", [model.DynamicConfigValue("custom.width", 300)])
    )
