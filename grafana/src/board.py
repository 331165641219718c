"""What all dashboards share: variables, annotations, links and time settings."""

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as model

from grafana.src.queries import data_source
from spikelab.signals import phases
from spikelab.signals.core import Colour, Source

TAG = "spikelab"


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
            phases.PHASES.colour,
            {
                "query": phases.PHASES.expressions[Source.INFLUXDB],
                "titleColumn": "title",
                "textColumn": "text",
                "tagsColumn": "tags",
                "timeEndColumn": "timeEnd",
            },
        ),
        StoredAnnotation(
            "Setting changes",
            Source.PROMETHEUS,
            phases.SETTING_CHANGE.colour,
            {
                "expr": phases.SETTING_CHANGE.expressions[Source.PROMETHEUS],
                "step": phases.SETTING_CHANGE.every,
                "titleFormat": "Setting changed",
                "textFormat": phases.SETTING_CHANGE.title,
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
