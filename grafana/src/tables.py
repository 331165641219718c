"""Rows of InfluxDB as tables, a column a figure with its own unit, and as curves."""

from collections.abc import Mapping, Sequence

from grafana_foundation_sdk.builders import dashboard, table
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model

from grafana.src.panels import Text
from grafana.src.queries import InfluxQuery, InfluxQueryBuilder, data_source
from spikelab.signals.core import Colour, Signal, Source, Unit
from spikelab.signals.runs import Column, Rows

Names = Mapping[str, tuple[str, Colour]]
Properties = list[model.DynamicConfigValue]

VERDICTS: Names = {
    "pass": ("pass", Colour.GOOD),
    "fail": ("fail", Colour.FAILED),
    "inconclusive": ("inconclusive", Colour.INCONCLUSIVE),
}
STATES: Names = {
    "valid": ("valid", Colour.GOOD),
    "invalid": ("invalid", Colour.TURNED_AWAY),
    "aborted": ("aborted", Colour.FAILED),
}
# As the axis of a curve says them.
AXIS_UNITS = {Unit.SECONDS: "s", Unit.SHARE: "share of 1", Unit.REQUESTS_PER_SECOND: "1/s"}


class InfluxTable(InfluxQuery):
    """An InfluxQL query whose answer is rows, not series."""

    def __init__(self, ref_id: str, query: str) -> None:
        super().__init__(ref_id, query, "")

    def to_json(self) -> dict[str, object]:
        """The target object of a panel."""
        return {**super().to_json(), "resultFormat": "table"}


def rows_table(
    text: Text,
    rows: Rows,
    *,
    width: int,
    height: int,
    links: Mapping[str, Sequence[tuple[str, str]]] | None = None,
) -> table.Panel:
    """A row a point; `links` are titles and urls by the heading of the column that has them."""
    panel = (
        table.Panel()
        .title(text.title)
        .description(_description(text, rows))
        .no_value(text.no_data)
        .datasource(data_source(Source.INFLUXDB))
        .span(width)
        .height(height)
        .unit(Unit.EXACT_COUNT)
        # Grafana 9.3 writes "null" down a column without any value, unless its text has a colour.
        .display_mode(common_model.TableCellDisplayMode.COLOR_TEXT)
        .color_scheme(dashboard.FieldColor().mode(model.FieldColorModeId.FIXED).fixed_color("text"))
        .show_header(True)
        .cell_height(common_model.TableCellHeight.SM)
    )
    for place, query in enumerate(rows.queries):
        panel.with_target(InfluxQueryBuilder(InfluxTable(chr(ord("A") + place), query)))
    if len(rows.queries) > 1:
        panel.with_transformation(model.DataTransformerConfig(id_val="merge", options={}))
    panel.with_transformation(_headings(rows.columns))
    for column in rows.columns:
        heading = column.title or column.name
        panel.override_by_name(heading, _style(column, (links or {}).get(heading, ())))
    return panel


def curves(
    text: Text, signal: Signal, over: str, *, width: int, height: int, logarithmic: bool = False
) -> dashboard.Panel:
    """A figure over another, `over`, a curve a value of the field `curve`: rows of InfluxDB.

    Grafana's xychart, in the form that 9.3 reads; later versions convert it when they load it. 9.3
    has no logarithmic scale on it, and writes numbers without their unit: so the axis says it.
    """
    query = signal.expressions[Source.INFLUXDB]
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
        .with_target(InfluxQueryBuilder(InfluxTable("A", query)))
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


def _description(text: Text, rows: Rows) -> str:
    meanings = [f"- **{column.title}**: {column.about}" for column in rows.columns if column.about]
    return "\n".join([f"{text.reading} A row each: {rows.about}.", "", *meanings])


def _headings(columns: Sequence[Column]) -> model.DataTransformerConfig:
    """Names and order of the columns; the time goes where they bring their own."""
    return model.DataTransformerConfig(
        id_val="organize",
        options={
            "excludeByName": {"Time": not any(column.name == "Time" for column in columns)},
            "indexByName": {column.name: place for place, column in enumerate(columns)},
            "renameByName": {column.name: column.title for column in columns if column.title},
        },
    )


def _style(column: Column, links: Sequence[tuple[str, str]]) -> Properties:
    if not column.title:
        return [model.DynamicConfigValue("custom.hidden", True)]
    properties = [
        model.DynamicConfigValue("custom.width", column.width_px),
        # The panel's own words are for a table without a row.
        model.DynamicConfigValue("noValue", column.without_value),
    ]
    if column.unit is not Unit.EXACT_COUNT:
        properties.append(model.DynamicConfigValue("unit", column.unit))
    if column.name in {"verdict", "state"}:
        properties += _in_colour(VERDICTS if column.name == "verdict" else STATES)
    if column.long:
        properties.append(model.DynamicConfigValue("custom.inspect", True))
    if links:
        listed = [{"title": title, "url": url} for title, url in links]
        properties.append(model.DynamicConfigValue("links", listed))
    return properties


def _in_colour(names: Names) -> Properties:
    options = {
        value: model.ValueMappingResult(text=text, color=colour, index=place)
        for place, (value, (text, colour)) in enumerate(names.items())
    }
    return [
        model.DynamicConfigValue("mappings", [model.ValueMap(options=options)]),
        # Grafana 9.3 reads the first, later versions the second.
        model.DynamicConfigValue("custom.displayMode", "color-text"),
        model.DynamicConfigValue("custom.cellOptions", {"type": "color-text"}),
    ]
