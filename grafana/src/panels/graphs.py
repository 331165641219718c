"""Signals over time, as lines, points, heat or bars."""

from collections.abc import Mapping, Sequence
from string import ascii_uppercase

from grafana_foundation_sdk.builders import common, dashboard, heatmap, statetimeline, timeseries
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import heatmap as heatmap_model

from grafana.src.panels.common import Text, description, fixed, legend, named
from grafana.src.queries import MIXED, data_source, prometheus_query, query_of, rows_of, source
from spikelab.signals import Colour, Signal, Source, Unit
from spikelab.units import parse_duration

# A wave of answers every few seconds is one curve, a pause of this length is a gap.
LONGEST_BRIDGED_GAP_MS = 10_000


# Grafana 9 writes the no-data message beside each line of a logarithmic scale that has no number.
_UNNAMED = [model.DynamicConfigValue("noValue", "")]


def _slowest(shown: Sequence[Signal]) -> str:
    """The panel's shortest step: that of the signal measured least often."""
    return max((signal.every for signal in shown), key=parse_duration)


def _style(signal: Signal) -> list[model.DynamicConfigValue]:
    properties = [fixed(signal.colour)]
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
        .description(description(text, shown))
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
        .legend(legend())
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
        for name, colour in signal.colours.items():
            panel.override_by_name(name, [fixed(colour)])
    return panel


def with_other_store(panel: timeseries.Panel, signal: Signal, ref_id: str) -> timeseries.Panel:
    """Adds a signal that the other store has; the panel's own text says what it is."""
    panel.datasource(MIXED).with_target(query_of(signal, ref_id))
    return panel.override_by_query(ref_id, _style(signal))


def scatter(text: Text, signal: Signal, *, width: int, height: int) -> timeseries.Panel:
    """A point a sample of InfluxDB, in the colour of its column (the signal's `colours`)."""
    panel = (
        timeseries.Panel()
        .title(text.title)
        .description(description(text, [signal]))
        .no_value(text.no_data)
        .datasource(data_source(Source.INFLUXDB))
        .span(width)
        .height(height)
        .unit(signal.unit)
        .min(0)
        .draw_style(common_model.GraphDrawStyle.POINTS)
        .show_points(common_model.VisibilityMode.ALWAYS)
        .point_size(4)
        .legend(legend())
        .tooltip(common.VizTooltipOptions().mode(common_model.TooltipDisplayMode.SINGLE))
        .with_target(rows_of(signal, "A"))
    )
    for column, colour in signal.colours.items():
        panel.override_by_name(column, [fixed(colour)])
    return panel


def distribution(text: Text, signal: Signal, *, width: int, height: int) -> heatmap.Panel:
    """A native histogram over time: one column a step, one row a bucket."""
    return (
        heatmap.Panel()
        .title(text.title)
        .description(description(text, [signal]))
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


def timeline(
    text: Text,
    signal: Signal,
    states: Mapping[float, tuple[str, Colour]],
    *,
    width: int,
    height: int,
) -> statetimeline.Panel:
    """A row a series, whose values have names; a gap is a time without a value."""
    # A timeline draws its rows by thresholds, and its tooltip by names.
    steps = [
        model.Threshold(value=value if place else None, color=states[value][1])
        for place, value in enumerate(sorted(states))
    ]
    return (
        statetimeline.Panel()
        .title(text.title)
        .description(description(text, [signal]))
        .no_value(text.no_data)
        .datasource(data_source(Source.PROMETHEUS))
        .span(width)
        .height(height)
        .interval(signal.every)
        .unit(signal.unit)
        .mappings([named(states)])
        .color_scheme(dashboard.FieldColor().mode(model.FieldColorModeId.THRESHOLDS))
        .thresholds(dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps))
        .show_value(common_model.VisibilityMode.NEVER)
        .merge_values(True)
        .fill_opacity(70)
        .line_width(0)
        .row_height(0.8)
        .legend(legend(shown=False))
        .with_target(query_of(signal, "A"))
    )
