"""Tables: of one signal's series, of several joined, of InfluxDB's rows."""

from collections.abc import Mapping, Sequence
from string import ascii_uppercase

from grafana_foundation_sdk.builders import common, dashboard, table
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import prometheus as prometheus_model

from grafana.src.panels.common import Names, Text, description, named
from grafana.src.queries import MIXED, data_source, influx_rows, prometheus_query, rows_of, source
from grafana.src.signals.runs import Rows, RunColumn
from spikelab.signals import Colour, Signal, Source, Unit

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
        .description(description(text, [signal]))
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
    stores = {signal.source for signal in shown}
    panel = (
        table.Panel()
        .title(text.title)
        .description(description(text, shown))
        .no_value(text.no_data)
        .datasource(data_source(source(shown)) if len(stores) == 1 else MIXED)
        .span(width)
        .height(height)
        .unit(shown[0].unit)
        .show_header(True)
        .cell_height(common_model.TableCellHeight.SM)
    )
    for ref_id, signal in zip(ascii_uppercase, shown, strict=False):
        panel.with_target(rows_of(signal, ref_id))
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
        .description(_about(text, rows))
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
        panel.with_target(influx_rows(ascii_uppercase[place], query))
    if len(rows.queries) > 1:
        panel.with_transformation(model.DataTransformerConfig(id_val="merge", options={}))
    panel.with_transformation(_headings(rows.columns))
    for column in rows.columns:
        heading = column.title or column.name
        panel.override_by_name(heading, _style(column, (links or {}).get(heading, ())))
    return panel


def _about(text: Text, rows: Rows) -> str:
    meanings = [f"- **{column.title}**: {column.about}" for column in rows.columns if column.about]
    return "\n".join([f"{text.reading} A row each: {rows.about}.", "", *meanings])


def _headings(columns: Sequence[RunColumn]) -> model.DataTransformerConfig:
    """Names and order of the columns; the time goes where they bring their own."""
    return model.DataTransformerConfig(
        id_val="organize",
        options={
            "excludeByName": {"Time": not any(column.name == "Time" for column in columns)},
            "indexByName": {column.name: place for place, column in enumerate(columns)},
            "renameByName": {column.name: column.title for column in columns if column.title},
        },
    )


def _style(column: RunColumn, links: Sequence[tuple[str, str]]) -> Properties:
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
    return [
        model.DynamicConfigValue("mappings", [named(names)]),
        # Grafana 9.3 reads the first, later versions the second.
        model.DynamicConfigValue("custom.displayMode", "color-text"),
        model.DynamicConfigValue("custom.cellOptions", {"type": "color-text"}),
    ]
