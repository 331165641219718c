"""A figure over another."""

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as model

from grafana.src.panels.common import Text
from grafana.src.queries import data_source, influx_rows
from spikelab.signals import Signal, Source, Unit

# As the axis of a curve says them.
AXIS_UNITS = {Unit.SECONDS: "s", Unit.SHARE: "share of 1", Unit.REQUESTS_PER_SECOND: "1/s"}


def curves(
    text: Text, signal: Signal, over: str, *, width: int, height: int, logarithmic: bool = False
) -> dashboard.Panel:
    """A figure over another, `over`, a curve a value of the field `curve`: rows of InfluxDB.

    Grafana's xychart, in the form that 9.3 reads; later versions convert it when they load it. 9.3
    has no logarithmic scale on it, and writes numbers without their unit: so the axis says it.
    """
    query = signal.query
    scale = {"type": "log", "log": 10} if logarithmic else {"type": "linear"}
    panel = (
        dashboard.Panel()
        .type("xychart")
        .title(text.title)
        .description(f"{text.reading}\n\n- **{signal.title}**: {signal.about}")
        .no_value(text.no_data)
        .datasource(data_source(Source.INFLUXDB))
        .span(width)
        .height(height)
        .unit(Unit.EXACT_COUNT)
        .custom(
            {
                "show": "points+lines",
                "lineWidth": 1,
                "pointSize": {"fixed": 6},
                "scaleDistribution": scale,
                "axisLabel": f"{signal.title} ({AXIS_UNITS[signal.unit]})",
            }
        )
        .options(
            {
                "seriesMapping": "auto",
                "dims": {"frame": 0, "x": over},
                "legend": {
                    "displayMode": "list",
                    "placement": "bottom",
                    "showLegend": True,
                    "calcs": [],
                },
                "tooltip": {"mode": "single", "sort": "none"},
            }
        )
        .with_target(influx_rows("A", query))
    )
    panel.override_by_name(
        over,
        [
            model.DynamicConfigValue("custom.axisLabel", over),
            # Those of the panel are the figure's.
            model.DynamicConfigValue("min", None),
            model.DynamicConfigValue("max", None),
        ],
    )
    if not logarithmic:
        panel.min(0)
    if signal.unit is Unit.SHARE:
        panel.max(1)
    for name, options in (
        ("organize", {"excludeByName": {"Time": True}}),
        ("partitionByValues", {"fields": ["curve"], "naming": {"asLabels": True}}),
        ("joinByField", {"byField": over, "mode": "outer"}),
    ):
        panel.with_transformation(model.DataTransformerConfig(id_val=name, options=options))
    return panel
