"""What panels share: their words, colours, legends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import common
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model

from spikelab.signals import Colour, Signal

Names = Mapping[str, tuple[str, Colour]]


@dataclass(frozen=True)
class Text:
    """The words of a panel: its title, how to read it, and what to do when it is empty."""

    title: str
    reading: str
    no_data: str


def description(text: Text, shown: Sequence[Signal]) -> str:
    """How to read the panel, and what each of its signals means."""
    meanings = [f"- **{_legend_name(signal)}**: {signal.about}" for signal in shown]
    return "\n".join([text.reading, "", *meanings])


def _legend_name(signal: Signal) -> str:
    """The legend without its labels."""
    return signal.title.split(" ({{")[0]


def fixed(colour: Colour) -> model.DynamicConfigValue:
    """One colour, whatever the value."""
    return model.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})


def named(states: Mapping[float, tuple[str, Colour]] | Names) -> model.ValueMap:
    """Values in words, each in its colour."""
    return model.ValueMap(
        options={
            str(value): model.ValueMappingResult(text=name, color=colour, index=place)
            for place, (value, (name, colour)) in enumerate(states.items())
        }
    )


def legend(*, shown: bool = True) -> common.VizLegendOptions:
    """A line of names below the panel."""
    return (
        common.VizLegendOptions()
        .display_mode(common_model.LegendDisplayMode.LIST)
        .placement(common_model.LegendPlacement.BOTTOM)
        .show_legend(shown)
        .calcs([])
    )
