"""Figures for the time shown, and words."""

from collections.abc import Mapping, Sequence
from string import ascii_uppercase

from grafana_foundation_sdk.builders import common, dashboard, stat
from grafana_foundation_sdk.builders import text as text_panel
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import text as text_model

from grafana.src.panels.common import Text, description, fixed, named
from grafana.src.queries import data_source, prometheus_query, query_of, source
from spikelab.signals import Colour, Signal, Source


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
        .description(description(text, [signal]))
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


def state(text: Text, signal: Signal, states: Mapping[float, tuple[str, Colour]]) -> stat.Panel:
    """A value that has a name, in words."""
    return number(text, signal, width=4, height=3).mappings([named(states)])


def figures(text: Text, shown: Sequence[Signal], *, width: int, height: int) -> stat.Panel:
    """Figures of InfluxDB side by side, one a signal; of what should not happen, 0 is good."""
    panel = (
        stat.Panel()
        .title(text.title)
        .description(description(text, shown))
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
        return [fixed(signal.colour)]
    steps = [{"value": None, "color": Colour.GOOD}, {"value": 1, "color": signal.colour}]
    return [
        model.DynamicConfigValue("color", {"mode": "thresholds"}),
        model.DynamicConfigValue("thresholds", {"mode": "absolute", "steps": steps}),
    ]


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
