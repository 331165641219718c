"""The signals of the lab, each declared once: name, unit, meaning, colour and its query.

Dashboards and reports draw signals and never write a query themselves. A query is written as
Grafana reads it: `$testid`, `$driver`, `$phase`, `$name` and `$target` are the dashboard's
variables, `$__interval` is the length of one point on the panel, `$__interval_ms` the same in
milliseconds and `$__rate_interval` a window long enough for `rate()`. `$__range` is the whole time
shown. `$testid` is a regular expression: "live" is `.*`, whatever is in the time shown.

Here are those that a run's record and its reports read; those of the dashboards alone are in
`grafana/src/signals/`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from spikelab import paths


class Source(StrEnum):
    """A store, by the uid of its data source in Grafana."""

    PROMETHEUS = "prometheus"
    INFLUXDB = "influxdb"


class Colour(StrEnum):
    """What a colour means, on every dashboard; each is readable on dark and on light."""

    GOOD = "green"
    FAILED = "red"
    TURNED_AWAY = "orange"
    WORKING = "blue"
    WAITING = "semi-dark-yellow"
    CONNECTED = "#1FA8A0"
    LIMIT = "#8E8E8E"
    PREDICTED = "#E54D9E"
    P50 = "super-light-purple"
    P90 = "light-purple"
    P95 = "purple"
    P99 = "semi-dark-purple"
    P99_9 = "dark-purple"
    SERVER = "#1FA8A0"
    DIAL_TIMEOUT = "orange"
    REQUEST_TIMEOUT = "red"
    RESET = "dark-orange"
    REFUSED = "dark-red"
    HTTP_4XX = "semi-dark-yellow"
    HTTP_5XX = "super-light-red"
    OTHER = "#8E8E8E"
    INCONCLUSIVE = "semi-dark-yellow"
    # Runs over each other, in the order in which they were chosen.
    RUN_1 = "blue"
    RUN_2 = "orange"
    RUN_3 = "#E54D9E"
    RUN_4 = "#1FA8A0"


class Unit(StrEnum):
    """Units as Grafana names them."""

    COUNT = "short"
    EXACT_COUNT = "none"
    SECONDS = "s"
    MILLISECONDS = "ms"
    REQUESTS_PER_SECOND = "reqps"
    COUNT_PER_SECOND = "cps"
    SHARE = "percentunit"
    BYTES = "bytes"
    BYTES_PER_SECOND = "Bps"


@dataclass(frozen=True)
class Signal:
    """One measured quantity.

    `title` is its legend and may hold labels as `{{label}}`; `every` is how often it is measured,
    the shortest step that makes sense; a `limit` is drawn as a dashed line, not as a measurement.
    A signal of several series may give each a colour of its own, by its legend (`colours`).
    """

    name: str
    title: str
    unit: Unit
    about: str
    colour: Colour
    query: str
    source: Source = Source.PROMETHEUS
    every: str = "1s"
    limit: bool = False
    colours: Mapping[str, Colour] = field(default_factory=dict)


RUN = 'testid=~"$testid", driver=~"$driver"'
PHASE = RUN + ', phase=~"$phase"'
REQUEST = PHASE + ', name=~"$name"'
TARGET = 'target=~"$target"'
# The lab's own, by the label of all its scrapes (prometheus/targets): a service of the user's, with
# an exporter beside it, has another. Replicas have the same.
LAB_TARGET = paths.TARGET.name
OF_LAB_TARGET = f'target="{LAB_TARGET}"'


def peak(series: str) -> str:
    """The highest value of a gauge within each point: a short queue is not missed."""
    return f"sum by (target) (max_over_time({series}{{{TARGET}}}[$__interval]))"


def per_second(series: str, selector: str = REQUEST, by: str = "driver") -> str:
    """The mean of a `loadtest:…:rate` over a point: its values are one a second and add up."""
    added = f"sum_over_time({series}{{{selector}}}[$__interval])"
    return f"sum by ({by}) ({added}) / $__interval_ms * 1000"


def latency_histogram(window: str, by: str = " by (driver)", selector: str = REQUEST) -> str:
    """Good answers of a window as one histogram: of their response times, and of a run that has
    none, or of one request by its name, of the drivers' own durations."""
    waited, own = (
        f"sum_over_time(loadtest:{name}_seconds{{{selector}}}[{window}])"
        for name in ("response_time", "latency")
    )
    return f"sum{by} ({waited} or on (testid, driver) {own})"


def _percentile(name: str, quantile: float, colour: Colour, share: str) -> Signal:
    return Signal(
        name=f"latency_{name.replace('.', '_')}",
        title=f"{name} ({{{{driver}}}})",
        unit=Unit.SECONDS,
        about=f"{share} good answers were faster, from when each was due or begun",
        colour=colour,
        query=f"histogram_quantile({quantile}, {latency_histogram('$__interval')})",
    )


GOOD_RATE = Signal(
    name="good_rate",
    title="good ({{driver}})",
    unit=Unit.REQUESTS_PER_SECOND,
    about="requests answered as expected, a second",
    colour=Colour.GOOD,
    query=per_second("loadtest:requests:rate") + " - " + per_second("loadtest:failures:rate"),
)
FAILURE_RATE = Signal(
    name="failure_rate",
    title="failed ({{driver}})",
    unit=Unit.REQUESTS_PER_SECOND,
    about="requests refused, timed out or answered with an unexpected status, a second",
    colour=Colour.FAILED,
    query=per_second("loadtest:failures:rate"),
)
DROPPED_RATE = Signal(
    name="dropped_rate",
    title="dropped ({{driver}})",
    unit=Unit.REQUESTS_PER_SECOND,
    about="iterations the driver could not start, a second",
    colour=Colour.TURNED_AWAY,
    query=per_second("loadtest:dropped:rate", PHASE),
)
USERS = Signal(
    name="users",
    title="users ({{driver}})",
    unit=Unit.COUNT,
    about="virtual users running",
    colour=Colour.WORKING,
    query=f"sum by (driver) (max_over_time(loadtest:users{{{RUN}}}[$__interval]))",
)
LATENCY_P50 = _percentile("p50", 0.5, Colour.P50, "half of the")
LATENCY_P90 = _percentile("p90", 0.9, Colour.P90, "90 of 100")
LATENCY_P95 = _percentile("p95", 0.95, Colour.P95, "95 of 100")
LATENCY_P99 = _percentile("p99", 0.99, Colour.P99, "99 of 100")
LATENCY_P99_9 = _percentile("p99.9", 0.999, Colour.P99_9, "999 of 1,000")

OFFERED_RATE = Signal(
    name="offered_rate",
    title="offered",
    unit=Unit.REQUESTS_PER_SECOND,
    about="requests a second that the plan asks for; none in a closed loop",
    colour=Colour.LIMIT,
    query=f"sum(loadtest:offered:rate{{{PHASE}}})",
    limit=True,
)
STARTED_RATE = Signal(
    name="started_rate",
    title="started ({{driver}})",
    unit=Unit.REQUESTS_PER_SECOND,
    about="requests a second that were begun, where the script counts beginnings (k6's of the lab)",
    colour=Colour.WORKING,
    query=per_second("loadtest:started:rate", PHASE),
)
ERRORS_BY_CLASS = Signal(
    name="errors_by_class",
    title="{{class}}",
    unit=Unit.REQUESTS_PER_SECOND,
    about=(
        "failed requests a second: no connection in time (dial_timeout), no answer in time "
        "(request_timeout), a connection cut (reset) or not accepted (refused), or a wrong status"
    ),
    colour=Colour.FAILED,
    query=per_second("loadtest:errors:rate", PHASE, "class"),
    colours={
        "dial_timeout": Colour.DIAL_TIMEOUT,
        "request_timeout": Colour.REQUEST_TIMEOUT,
        "reset": Colour.RESET,
        "refused": Colour.REFUSED,
        "http_4xx": Colour.HTTP_4XX,
        "http_5xx": Colour.HTTP_5XX,
        "other": Colour.OTHER,
    },
)


CONNECTIONS_ESTABLISHED = Signal(
    name="connections_established",
    title="established",
    unit=Unit.COUNT,
    about="connections of the traffic port, counted by the target's kernel, accepted or not",
    colour=Colour.CONNECTED,
    query=peak("sockets_established"),
)
CONNECTIONS_PREDICTED = Signal(
    name="connections_predicted",
    title="predicted capacity",
    unit=Unit.COUNT,
    about="max-connections + effective accept-queue limit + 1: what the target can hold",
    colour=Colour.PREDICTED,
    query=f"sum by (target) (loadtest:connections:predicted{{{TARGET}}})",
    limit=True,
)
ACCEPT_QUEUE_DEPTH = Signal(
    name="accept_queue_depth",
    title="waiting",
    unit=Unit.COUNT,
    about="connections the kernel has completed and Tomcat has not yet accepted",
    colour=Colour.WAITING,
    query=peak("sockets_accept_queue_depth"),
)
WORKER_QUEUE_DEPTH = Signal(
    name="worker_queue_depth",
    title="waiting",
    unit=Unit.COUNT,
    about="requests on a connection that wait for a worker thread",
    colour=Colour.WAITING,
    query=peak("tomcat_worker_queue_depth"),
    every="2s",
)
