"""Whether the lab itself can be believed: its scrapes, what it takes in, its rules, its stores."""

from spikelab.signals import RUN, Colour, Signal, Unit

# The stores are not of a run or a target, so they are shown whichever of these is chosen.
PROMETHEUS = 'job="lab", component="prometheus"'
STORES = 'job="lab"'
SCRAPED = 'target=~"$target|"'
# Stores are scraped every 5 s: a rate needs some of their scrapes.
EVERY_SCRAPE, SOME_SCRAPES = "5s", "15s"
COMPONENTS = {
    "target": Colour.WORKING,
    "sockets": Colour.CONNECTED,
    "proxy": Colour.PREDICTED,
    "prometheus": Colour.TURNED_AWAY,
    "influxdb": Colour.P95,
    "grafana": Colour.WAITING,
}


def _by_component(series: str) -> str:
    """The target and its exporter are known by their jobs, the rest by name."""
    return (
        "max by (component) "
        f'(label_replace({series}, "component", "$1", "job", "(target|sockets)"))'
    )


def _rate(series: str, selector: str = "", by: str = "") -> str:
    grouped = f" by ({by})" if by else ""
    return f"sum{grouped} (rate({series}{{{PROMETHEUS}{selector}}}[$__rate_interval]))"


def _of_group(series: str) -> str:
    """A rule group by its name, without its file."""
    return (
        f'max by (group) (label_replace({series}{{{PROMETHEUS}}}, "group", "$1", '
        '"rule_group", ".*;(.*)"))'
    )


# Scrapes.

SCRAPE_UP = Signal(
    name="scrape_up",
    title="{{component}}",
    unit=Unit.EXACT_COUNT,
    about="whether it answered Prometheus at every scrape",
    colour=Colour.GOOD,
    query=_by_component(f"min_over_time(up{{{SCRAPED}}}[$__interval])"),
    every=EVERY_SCRAPE,
)
SCRAPE_AGE = Signal(
    name="scrape_age",
    title="{{component}}",
    unit=Unit.SECONDS,
    about="time since the newest scrape: up to 1 s for sockets, 2 s for the target, 5 s for others",
    colour=Colour.WORKING,
    query=f"time() - {_by_component(f'timestamp(up{{{SCRAPED}}})')}",
    colours=COMPONENTS,
)
SCRAPE_DURATION = Signal(
    name="scrape_duration",
    title="{{component}}",
    unit=Unit.SECONDS,
    about="time the newest scrape took",
    colour=Colour.WORKING,
    query=(_by_component(f"max_over_time(scrape_duration_seconds{{{SCRAPED}}}[$__interval])")),
    every=EVERY_SCRAPE,
    colours=COMPONENTS,
)
SCRAPE_SAMPLES = Signal(
    name="scrape_samples",
    title="{{component}}",
    unit=Unit.COUNT,
    about="values in one scrape",
    colour=Colour.WORKING,
    query=_by_component(f"scrape_samples_scraped{{{SCRAPED}}}"),
    every=EVERY_SCRAPE,
    colours=COMPONENTS,
)
# What is taken in.

SAMPLES_APPENDED = Signal(
    name="samples_appended",
    title="{{type}}",
    unit=Unit.COUNT_PER_SECOND,
    about="samples Prometheus stored, scraped, pushed and from its rules; histogram: native ones",
    colour=Colour.WORKING,
    query=_rate("prometheus_tsdb_head_samples_appended_total", by="type"),
    every=SOME_SCRAPES,
    colours={"float": Colour.WORKING, "histogram": Colour.P95},
)
SAMPLES_REFUSED = Signal(
    name="samples_refused",
    title="out of order or too old",
    unit=Unit.COUNT_PER_SECOND,
    about="samples Prometheus did not store because it has newer ones of the series",
    colour=Colour.TURNED_AWAY,
    query=(
        " + ".join(
            _rate(f"prometheus_tsdb_{kind}_samples_total")
            for kind in ("out_of_order", "out_of_bound", "too_old")
        )
    ),
    every=SOME_SCRAPES,
)
PUSHES_FAILED = Signal(
    name="pushes_failed",
    title="pushes refused",
    unit=Unit.COUNT_PER_SECOND,
    about="remote writes and OTLP exports answered with an error",
    colour=Colour.REFUSED,
    query=(
        _rate(
            "prometheus_http_requests_total",
            ', handler=~"/api/v1/(write|otlp/v1/metrics)", code!~"2.."',
        )
        + " or vector(0)"
    ),
    every=SOME_SCRAPES,
)
PUSH_AGE = Signal(
    name="push_age",
    title="{{testid}}",
    unit=Unit.SECONDS,
    about="time since the newest sample the driver pushed, while its run goes",
    colour=Colour.WAITING,
    query=(
        "time() - max by (testid) (timestamp("
        '{__name__=~"k6_vus|locust_users_count", testid=~"$testid"}))'
        f" and on (testid) loadtest:users{{{RUN}}}"
    ),
)
EVENTS_PENDING = Signal(
    name="events_pending",
    title="phases not in InfluxDB",
    unit=Unit.COUNT,
    about="phases that have begun and that the dashboards do not mark yet",
    colour=Colour.TURNED_AWAY,
    query=f"max(max_over_time(lab_events_pending{{{RUN}}}[$__interval]))",
)
# Rules, queries, alerts.

RULE_DURATION = Signal(
    name="rule_duration",
    title="{{group}}",
    unit=Unit.SECONDS,
    about="time the newest evaluation of a group of rules took",
    colour=Colour.WORKING,
    query=_of_group("prometheus_rule_group_last_duration_seconds"),
    every=EVERY_SCRAPE,
    colours={"loadtest": Colour.WORKING, "alerts": Colour.TURNED_AWAY},
)
RULE_INTERVAL = Signal(
    name="rule_interval",
    title="interval",
    unit=Unit.SECONDS,
    about="time between two evaluations, which none may exceed",
    colour=Colour.LIMIT,
    query=f"min(prometheus_rule_group_interval_seconds{{{PROMETHEUS}}}) > 0",
    every=EVERY_SCRAPE,
    limit=True,
)
RULES_MISSED = Signal(
    name="rules_missed",
    title="evaluations missed",
    unit=Unit.COUNT_PER_SECOND,
    about="evaluations left out because the one before had not ended: a second without a rate",
    colour=Colour.WAITING,
    query=_rate("prometheus_rule_group_iterations_missed_total"),
    every=SOME_SCRAPES,
)
RULES_FAILED = Signal(
    name="rules_failed",
    title="evaluations failed",
    unit=Unit.COUNT_PER_SECOND,
    about="rules that ended with an error; Prometheus' log names them",
    colour=Colour.FAILED,
    query=_rate("prometheus_rule_evaluation_failures_total"),
    every=SOME_SCRAPES,
)


def _request_mean(name: str, title: str, about: str, handler: str, colour: Colour) -> Signal:
    took, number = (
        _rate(f"prometheus_http_request_duration_seconds_{part}", f', handler=~"{handler}"')
        for part in ("sum", "count")
    )
    return Signal(
        name=name,
        title=title,
        unit=Unit.SECONDS,
        about=about,
        colour=colour,
        query=f"{took} / ({number} > 0)",
        every=SOME_SCRAPES,
    )


QUERY_MEAN = _request_mean(
    "query_mean",
    "queries",
    "mean time of a query, of panels, the lab and others",
    "/api/v1/query(_range)?",
    Colour.P95,
)
PUSH_MEAN = _request_mean(
    "push_mean",
    "pushes",
    "mean time to take in a remote write or an OTLP export",
    "/api/v1/(write|otlp/v1/metrics)",
    Colour.WORKING,
)
EVALUATION_P99 = Signal(
    name="evaluation_p99",
    title="p99 of evaluations",
    unit=Unit.SECONDS,
    about="99 of 100 expressions of the last minutes, those of the rules included, were faster",
    colour=Colour.P99,
    query=(
        f'max(prometheus_engine_query_duration_seconds{{{PROMETHEUS}, slice="inner_eval", '
        'quantile="0.99"})'
    ),
    every=SOME_SCRAPES,
)
ALERTS_FIRED = Signal(
    name="alerts_fired",
    title="seconds firing",
    unit=Unit.SECONDS,
    about="how long it was firing in the time shown, evaluated every second",
    colour=Colour.FAILED,
    query=(
        "sum by (alertname, severity, of) (label_replace(label_replace("
        'count_over_time(ALERTS{alertstate="firing", testid=~"$testid|", target=~"$target|"}'
        '[$__range]), "of", "$1", "testid", "(.+)"), "of", "$1", "target", "(.+)"))'
    ),
)
# The stores.

STORE_MEMORY = Signal(
    name="store_memory",
    title="{{component}}",
    unit=Unit.BYTES,
    about="memory its process holds",
    colour=Colour.WORKING,
    query=f"max by (component) (process_resident_memory_bytes{{{STORES}}})",
    every=EVERY_SCRAPE,
    colours=COMPONENTS,
)
STORE_DISK = Signal(
    name="store_disk",
    title="prometheus",
    unit=Unit.BYTES,
    about="what Prometheus has on disk: blocks, what is not in a block yet, and its log",
    colour=Colour.TURNED_AWAY,
    query=(
        " + ".join(
            f"sum(prometheus_tsdb_{part}_bytes{{{PROMETHEUS}}})"
            for part in ("storage_blocks", "head_chunks_storage_size", "wal_storage_size")
        )
    ),
    every=EVERY_SCRAPE,
)
HEAD_SERIES = Signal(
    name="head_series",
    title="series in memory",
    unit=Unit.COUNT,
    about="series Prometheus has had a sample of in the last hours",
    colour=Colour.WORKING,
    query=f"sum(prometheus_tsdb_head_series{{{PROMETHEUS}}})",
    every=EVERY_SCRAPE,
)
