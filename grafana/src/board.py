"""What all dashboards share: variables, annotations, links and time settings."""

from collections.abc import Collection

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as model

from grafana.src.queries import data_source
from grafana.src.signals import phases
from spikelab.signals import Colour, Source

TAG = "spikelab"
# Dashboards that look at finished runs have a time range of their own.
HISTORY_TAG = "spikelab-history"
LIVE = "live"
CHOICES = ("testid", "driver", "phase", "name", "target")


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


def _variable(name: str, label: str, about: str, query: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .description(about)
        .datasource(data_source(Source.PROMETHEUS))
        .query({"query": query, "refId": f"variable-{name}"})
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
    )


def _choice(name: str, label: str, about: str, query: str) -> dashboard.QueryVariable:
    return (
        _variable(name, label, about, query)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
        .include_all(True)
        .all_value(".*")
        .current(model.VariableOption(text="All", value="$__all", selected=True))
    )


def _run() -> dashboard.QueryVariable:
    """The runs in the time shown, newest first as a testid begins with its time, after "live"."""
    return (
        _variable(
            "testid",
            "Run",
            "A run, newest first; live shows whatever runs in the time shown.",
            f"query_result({_named(LIVE, 'vector(1)')} or {_named_runs()})",
        )
        # Between labels Grafana 9 writes a comma, later versions a space as well.
        .regex(r'/text="(?<text>[^"]+)",\s*value="(?<value>[^"]+)"/')
        .sort(model.VariableSort.ALPHABETICAL_DESC)
        .current(model.VariableOption(text=LIVE, value=".*", selected=True))
    )


def _named(text: str, series: str) -> str:
    return (
        f'label_replace(label_replace({series}, "text", "{text}", "", ""), "value", ".*", "", "")'
    )


def _named_runs() -> str:
    runs = (
        'group by (testid) (last_over_time({__name__=~"loadtest:users|loadtest:requests:total", '
        'testid!=""}[$__range]))'
    )
    copied = f'label_replace({runs}, "text", "$1", "testid", "(.+)")'
    return f'label_replace({copied}, "value", "$1", "testid", "(.+)")'


def variables() -> list[dashboard.QueryVariable]:
    """The choices every dashboard offers, so that links between them keep all of them."""
    load = '{__name__=~"loadtest:(offered:rate|started:total|requests:total)", testid=~"$testid"}'
    answers = 'loadtest:requests:total{testid=~"$testid"}'
    return [
        _run(),
        _choice("driver", "Driver", "The load generator.", f"label_values({answers}, driver)"),
        _choice("phase", "Phase", "A phase of the plan.", f"label_values({load}, phase)"),
        _choice("name", "Request", "A request's name.", f"label_values({answers}, name)"),
        _choice(
            "target",
            "Target",
            "The server under load.",
            # Of a service of the user's, the exporter alone has series.
            'label_values({__name__=~"tomcat_setting|sockets_listening"}, target)',
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
                "query": phases.PHASES.query,
                "titleColumn": "title",
                "textColumn": "text",
                "tagsColumn": "tags",
                "timeEndColumn": "timeEnd",
            },
        ),
        StoredAnnotation(
            "Settings",
            Source.PROMETHEUS,
            phases.SETTING_CHANGE.colour,
            {
                "expr": phases.SETTING_CHANGE.query,
                "step": phases.SETTING_CHANGE.every,
                "titleFormat": "Setting changed",
                "textFormat": phases.SETTING_CHANGE.title,
                "tagKeys": "target",
            },
        ),
    ]


def _link(title: str, tag: str, *, keeps_time: bool) -> dashboard.DashboardLink:
    return (
        dashboard.DashboardLink(title)
        .type(model.DashboardLinkType.DASHBOARDS)
        .tags([tag])
        .as_dropdown(True)
        .include_vars(True)
        .keep_time(keeps_time)
    )


def new_dashboard(
    uid: str,
    title: str,
    about: str,
    *,
    tag: str = TAG,
    choices: Collection[str] = CHOICES,
) -> dashboard.Dashboard:
    """An empty dashboard with the lab's variables, annotations, links and time settings.

    `choices` are the variables that are shown; the others are kept for the links.
    """
    board = (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(about)
        .tags([tag])
        .timezone("browser")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .time("now-15m", "now")
        .refresh("5s")
        .timepicker(
            dashboard.TimePicker().refresh_intervals(["1s", "2s", "5s", "10s", "30s", "1m", "5m"])
        )
        # A history's days, or seconds since 1970, are no time to look at one run.
        .link(_link("Dashboards", TAG, keeps_time=tag == TAG))
        .link(_link("History", HISTORY_TAG, keeps_time=False))
    )
    for name, variable in zip(CHOICES, variables(), strict=True):
        if name not in choices:
            variable.hide(model.VariableHide.HIDE_VARIABLE)
        board.with_variable(variable)
    for annotation in annotations():
        board.annotation(AnnotationBuilder(annotation))
    return board
