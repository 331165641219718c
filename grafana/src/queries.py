"""A signal's query as a panel stores it."""

from collections.abc import Sequence

from grafana_foundation_sdk.builders import prometheus
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import prometheus as prometheus_model

from spikelab.signals import Signal, Source


def data_source(source: Source) -> model.DataSourceRef:
    """The reference to a store: type and uid have the same name here."""
    return model.DataSourceRef(type_val=source, uid=source)


class InfluxQuery(Dataquery):
    """An InfluxQL query as Grafana stores it; the SDK has none for this data source."""

    def __init__(
        self, ref_id: str, query: str, alias: str = "", result_format: str = "time_series"
    ) -> None:
        self.ref_id = ref_id
        self.query = query
        self.alias = alias
        self.result_format = result_format

    def to_json(self) -> dict[str, object]:
        """The target object of a panel."""
        return {
            "refId": self.ref_id,
            "datasource": data_source(Source.INFLUXDB),
            "query": self.query,
            "alias": self.alias,
            "rawQuery": True,
            "resultFormat": self.result_format,
        }


class InfluxQueryBuilder(Builder[Dataquery]):
    """Gives an `InfluxQuery` to a panel builder."""

    def __init__(self, query: InfluxQuery) -> None:
        self._query = query

    def build(self) -> Dataquery:
        """The query itself."""
        return self._query


# A panel with queries of both stores names none.
MIXED = model.DataSourceRef(type_val="datasource", uid="-- Mixed --")


def source(shown: Sequence[Signal]) -> Source:
    (source,) = {signal.source for signal in shown}
    return source


def query_of(signal: Signal, ref_id: str) -> Builder[Dataquery]:
    if signal.source is Source.INFLUXDB:
        query = InfluxQuery(ref_id, signal.query, signal.title)
        return InfluxQueryBuilder(query)
    return prometheus_query(signal, ref_id).range()


def prometheus_query(signal: Signal, ref_id: str) -> prometheus.Dataquery:
    return (
        prometheus.Dataquery()
        .ref_id(ref_id)
        .datasource(data_source(Source.PROMETHEUS))
        .expr(signal.query)
        .legend_format(signal.title)
        .editor_mode(prometheus_model.QueryEditorMode.CODE)
    )


def influx_rows(ref_id: str, query: str, alias: str = "") -> Builder[Dataquery]:
    """An InfluxQL query whose answer is rows, not series."""
    return InfluxQueryBuilder(InfluxQuery(ref_id, query, alias, "table"))


def rows_of(signal: Signal, ref_id: str) -> Builder[Dataquery]:
    """A signal's query whose answer is rows: of InfluxDB points, of Prometheus series as of now."""
    if signal.source is Source.INFLUXDB:
        return influx_rows(ref_id, signal.query, signal.title)
    asked = prometheus_query(signal, ref_id).instant()
    return asked.format(prometheus_model.PromQueryFormat.TABLE)
