"""The signals of the lab, each declared once: name, unit, meaning, colour and its queries.

Dashboards and reports draw signals and never write a query themselves. A query is written as
Grafana reads it: `$testid`, `$driver` and `$target` are the dashboard's variables, `$__interval`
is the length of one point on the panel, `$__interval_ms` the same in milliseconds and
`$__rate_interval` a window long enough for `rate()`. `$__range` is the whole time shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


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
    P50 = "light-purple"
    P95 = "purple"
    P99 = "dark-purple"


class Unit(StrEnum):
    """Units as Grafana names them."""

    COUNT = "short"
    EXACT_COUNT = "none"
    SECONDS = "s"
    MILLISECONDS = "ms"
    REQUESTS_PER_SECOND = "reqps"
    COUNT_PER_SECOND = "cps"
    SHARE = "percentunit"


@dataclass(frozen=True)
class Signal:
    """One measured quantity.

    `title` is its legend and may hold labels as `{{label}}`; `every` is how often it is measured,
    the shortest step that makes sense; a `limit` is drawn as a dashed line, not as a measurement.
    """

    name: str
    title: str
    unit: Unit
    about: str
    colour: Colour
    expressions: Mapping[Source, str]
    every: str = "1s"
    limit: bool = False


RUN = 'testid=~"$testid", driver=~"$driver"'
TARGET = 'target=~"$target"'
# A bare `k6 run --out influxdb=…` has no testid: its tag is empty, which "All" fits as well.
RAW = '"testid" =~ /^${testid:regex}$/ AND $timeFilter'
# Set-up and tear-down have no scenario, the lab's own phase events are no load.
LOAD = """ AND "scenario" != '' AND "name" != 'spikelab-event'"""
A_SECOND = " / $__interval_ms * 1000"
GOOD_LOAD = LOAD + " AND \"expected_response\" = 'true'"


def _per_second(series: str) -> str:
    """The mean of a `loadtest:…:rate` over a point: its values are one a second and add up."""
    return (
        f"sum by (driver) (sum_over_time({series}{{{RUN}}}[$__interval])) / $__interval_ms * 1000"
    )


def _latency_quantile(quantile: float) -> str:
    return (
        f"histogram_quantile({quantile}, sum by (driver) "
        f"(sum_over_time(loadtest:latency_seconds{{{RUN}}}[$__interval])))"
    )


def _peak(series: str) -> str:
    """The highest value of a gauge within each point: a short queue is not missed."""
    return f"sum by (target) (max_over_time({series}{{{TARGET}}}[$__interval]))"


def _increase_per_second(series: str, selector: str = "") -> str:
    return f"sum by (target) (rate({series}{{{TARGET}{selector}}}[$__rate_interval]))"


def _raw(function: str, measurement: str, condition: str = "", empty: str = "none") -> str:
    """An InfluxQL query over k6's raw samples; `empty` is the value of a point without any."""
    return (
        f'SELECT {function} FROM "{measurement}" WHERE {RAW}{condition} '
        f"GROUP BY time($__interval) fill({empty})"
    )


# The load.

GOOD_RATE = Signal(
    name="good_rate",
    title="good ({{driver}})",
    unit=Unit.REQUESTS_PER_SECOND,
    about="requests answered as expected, a second",
    colour=Colour.GOOD,
    expressions={
        Source.PROMETHEUS: (
            _per_second("loadtest:requests:rate") + " - " + _per_second("loadtest:failures:rate")
        )
    },
)
FAILURE_RATE = Signal(
    name="failure_rate",
    title="failed ({{driver}})",
    unit=Unit.REQUESTS_PER_SECOND,
    about="requests refused, timed out or answered with an unexpected status, a second",
    colour=Colour.FAILED,
    expressions={Source.PROMETHEUS: _per_second("loadtest:failures:rate")},
)
DROPPED_RATE = Signal(
    name="dropped_rate",
    title="dropped ({{driver}})",
    unit=Unit.REQUESTS_PER_SECOND,
    about="iterations the driver could not start, a second",
    colour=Colour.TURNED_AWAY,
    expressions={Source.PROMETHEUS: _per_second("loadtest:dropped:rate")},
)
USERS = Signal(
    name="users",
    title="users ({{driver}})",
    unit=Unit.COUNT,
    about="virtual users running",
    colour=Colour.WORKING,
    expressions={
        Source.PROMETHEUS: f"sum by (driver) (max_over_time(loadtest:users{{{RUN}}}[$__interval]))"
    },
)
USERS_NOW = Signal(
    name="users_now",
    title="users",
    unit=Unit.EXACT_COUNT,
    about="virtual users running at the end of the time shown",
    colour=Colour.WORKING,
    expressions={Source.PROMETHEUS: f"sum(loadtest:users{{{RUN}}}) or vector(0)"},
)
REQUESTS_IN_RANGE = Signal(
    name="requests_in_range",
    title="requests",
    unit=Unit.EXACT_COUNT,
    about="requests that ended in the time shown, counted exactly",
    colour=Colour.GOOD,
    expressions={
        Source.PROMETHEUS: f"sum(sum_over_time(loadtest:requests:rate{{{RUN}}}[$__range]))"
    },
)
FAILURES_IN_RANGE = Signal(
    name="failures_in_range",
    title="failures",
    unit=Unit.EXACT_COUNT,
    about="requests without a good answer in the time shown, counted exactly",
    colour=Colour.FAILED,
    expressions={
        Source.PROMETHEUS: f"sum(sum_over_time(loadtest:failures:rate{{{RUN}}}[$__range]))"
    },
)
DROPPED_IN_RANGE = Signal(
    name="dropped_in_range",
    title="dropped",
    unit=Unit.EXACT_COUNT,
    about="iterations never started in the time shown",
    colour=Colour.TURNED_AWAY,
    expressions={
        Source.PROMETHEUS: f"sum(sum_over_time(loadtest:dropped:rate{{{RUN}}}[$__range]))"
    },
)
LATENCY_P95_IN_RANGE = Signal(
    name="latency_p95_in_range",
    title="p95",
    unit=Unit.SECONDS,
    about="95 of 100 good answers in the time shown were faster",
    colour=Colour.P95,
    expressions={
        Source.PROMETHEUS: "histogram_quantile(0.95, sum(sum_over_time("
        f"loadtest:latency_seconds{{{RUN}}}[$__range])))"
    },
)
LATENCY_P50 = Signal(
    name="latency_p50",
    title="p50 ({{driver}})",
    unit=Unit.SECONDS,
    about="half of the good answers were faster",
    colour=Colour.P50,
    expressions={Source.PROMETHEUS: _latency_quantile(0.5)},
)
LATENCY_P95 = Signal(
    name="latency_p95",
    title="p95 ({{driver}})",
    unit=Unit.SECONDS,
    about="95 of 100 good answers were faster",
    colour=Colour.P95,
    expressions={Source.PROMETHEUS: _latency_quantile(0.95)},
)
LATENCY_P99 = Signal(
    name="latency_p99",
    title="p99 ({{driver}})",
    unit=Unit.SECONDS,
    about="99 of 100 good answers were faster",
    colour=Colour.P99,
    expressions={Source.PROMETHEUS: _latency_quantile(0.99)},
)
LATENCY_DISTRIBUTION = Signal(
    name="latency_distribution",
    title="good answers",
    unit=Unit.SECONDS,
    about="good answers by the moment they came and the time they took",
    colour=Colour.P95,
    expressions={
        Source.PROMETHEUS: f"sum(sum_over_time(loadtest:latency_seconds{{{RUN}}}[$__interval]))"
    },
)
GOOD_TOTAL = Signal(
    name="good_total",
    title="good",
    unit=Unit.COUNT,
    about="requests answered as expected since the start of the run",
    colour=Colour.GOOD,
    expressions={
        Source.PROMETHEUS: (
            f"sum(loadtest:requests:total{{{RUN}}}) - sum(loadtest:failures:total{{{RUN}}})"
        )
    },
)
FAILURES_TOTAL = Signal(
    name="failures_total",
    title="failed",
    unit=Unit.COUNT,
    about="requests without a good answer since the start of the run",
    colour=Colour.FAILED,
    expressions={Source.PROMETHEUS: f"sum(loadtest:failures:total{{{RUN}}})"},
)
DROPPED_TOTAL = Signal(
    name="dropped_total",
    title="never started",
    unit=Unit.COUNT,
    about="iterations the driver dropped since the start of the run",
    colour=Colour.TURNED_AWAY,
    expressions={Source.PROMETHEUS: f"sum(loadtest:dropped:total{{{RUN}}})"},
)
IN_FLIGHT = Signal(
    name="in_flight",
    title="in flight",
    unit=Unit.COUNT,
    about="requests begun and not yet ended; users, where the script does not count beginnings",
    colour=Colour.WORKING,
    expressions={
        Source.PROMETHEUS: (
            f"clamp_min(sum(loadtest:started:total{{{RUN}}}) "
            f"- (sum(loadtest:requests:total{{{RUN}}}) or vector(0)), 0) "
            f"or sum(loadtest:users{{{RUN}}})"
        )
    },
)
STARTED_TOTAL = Signal(
    name="started_total",
    title="started",
    unit=Unit.COUNT,
    about="requests begun since the start of the run, where the script counts them",
    colour=Colour.LIMIT,
    expressions={Source.PROMETHEUS: f"sum(loadtest:started:total{{{RUN}}})"},
    limit=True,
)

OFFERED_RATE = Signal(
    name="offered_rate",
    title="offered",
    unit=Unit.REQUESTS_PER_SECOND,
    about="requests a second that the plan asks for; none in a closed loop",
    colour=Colour.LIMIT,
    expressions={Source.PROMETHEUS: f"sum(loadtest:offered:rate{{{RUN}}})"},
    limit=True,
)

# Where requests wait, from the network to the worker.

CONNECTIONS_ESTABLISHED = Signal(
    name="connections_established",
    title="established",
    unit=Unit.COUNT,
    about="connections of the traffic port, counted by the target's kernel, accepted or not",
    colour=Colour.CONNECTED,
    expressions={Source.PROMETHEUS: _peak("sockets_established")},
)
CONNECTIONS_PREDICTED = Signal(
    name="connections_predicted",
    title="predicted capacity",
    unit=Unit.COUNT,
    about="max-connections + effective accept-queue limit + 1: what the target can hold",
    colour=Colour.PREDICTED,
    expressions={
        Source.PROMETHEUS: f"sum by (target) (loadtest:connections:predicted{{{TARGET}}})"
    },
    limit=True,
)
CONNECTIONS_MAXIMUM = Signal(
    name="connections_maximum",
    title="max-connections",
    unit=Unit.COUNT,
    about="connections Tomcat accepts before it leaves the rest in the accept queue",
    colour=Colour.LIMIT,
    expressions={
        Source.PROMETHEUS: (
            f'max by (target) (tomcat_setting{{{TARGET}, name="TOMCAT_MAX_CONNECTIONS"}})'
        )
    },
    every="2s",
    limit=True,
)
ACCEPT_QUEUE_DEPTH = Signal(
    name="accept_queue_depth",
    title="waiting",
    unit=Unit.COUNT,
    about="connections the kernel has completed and Tomcat has not yet accepted",
    colour=Colour.WAITING,
    expressions={Source.PROMETHEUS: _peak("sockets_accept_queue_depth")},
)
ACCEPT_QUEUE_LIMIT = Signal(
    name="accept_queue_limit",
    title="limit",
    unit=Unit.COUNT,
    about="accept-count or somaxconn, whichever is lower; the kernel holds one more",
    colour=Colour.LIMIT,
    expressions={Source.PROMETHEUS: f"sum by (target) (sockets_accept_queue_limit{{{TARGET}}})"},
    limit=True,
)
LISTEN_OVERFLOWS = Signal(
    name="listen_overflows",
    title="overflows",
    unit=Unit.COUNT_PER_SECOND,
    about="connection attempts that met a full accept queue, retries included",
    colour=Colour.TURNED_AWAY,
    expressions={Source.PROMETHEUS: _increase_per_second("sockets_listen_overflows_total")},
)
LISTEN_DROPS = Signal(
    name="listen_drops",
    title="drops",
    unit=Unit.COUNT_PER_SECOND,
    about="connection attempts dropped for any reason",
    colour=Colour.FAILED,
    expressions={Source.PROMETHEUS: _increase_per_second("sockets_listen_drops_total")},
)
WORKER_QUEUE_DEPTH = Signal(
    name="worker_queue_depth",
    title="waiting",
    unit=Unit.COUNT,
    about="requests on a connection that wait for a worker thread",
    colour=Colour.WAITING,
    expressions={Source.PROMETHEUS: _peak("tomcat_worker_queue_depth")},
    every="2s",
)


def _queue_wait(quantile: float) -> str:
    return (
        f"histogram_quantile({quantile}, sum by (target) "
        f"(rate(tomcat_worker_queue_wait_seconds{{{TARGET}}}[$__rate_interval])))"
    )


WORKER_QUEUE_WAIT_P50 = Signal(
    name="worker_queue_wait_p50",
    title="p50",
    unit=Unit.SECONDS,
    about="half of the requests waited less for a worker",
    colour=Colour.P50,
    expressions={Source.PROMETHEUS: _queue_wait(0.5)},
    every="2s",
)
WORKER_QUEUE_WAIT_P99 = Signal(
    name="worker_queue_wait_p99",
    title="p99",
    unit=Unit.SECONDS,
    about="99 of 100 requests waited less for a worker",
    colour=Colour.P99,
    expressions={Source.PROMETHEUS: _queue_wait(0.99)},
    every="2s",
)
THREADS_BUSY = Signal(
    name="threads_busy",
    title="busy",
    unit=Unit.COUNT,
    about="worker threads that serve a request",
    colour=Colour.WORKING,
    expressions={Source.PROMETHEUS: _peak("tomcat_threads_busy_threads")},
    every="2s",
)
THREADS_MAXIMUM = Signal(
    name="threads_maximum",
    title="maximum",
    unit=Unit.COUNT,
    about="worker threads Tomcat may have; without a line there is no limit (virtual threads)",
    colour=Colour.LIMIT,
    expressions={
        Source.PROMETHEUS: f"sum by (target) (tomcat_threads_config_max_threads{{{TARGET}}}) < +Inf"
    },
    every="2s",
    limit=True,
)


def _server_latency(quantile: float) -> str:
    return (
        f"histogram_quantile({quantile}, sum by (target, le) "
        f"(rate(http_server_requests_seconds_bucket{{{TARGET}}}[$__rate_interval])))"
    )


SERVER_LATENCY_P50 = Signal(
    name="server_latency_p50",
    title="p50",
    unit=Unit.SECONDS,
    about="half of the requests took the server less, once a worker had them",
    colour=Colour.P50,
    expressions={Source.PROMETHEUS: _server_latency(0.5)},
    every="2s",
)
SERVER_LATENCY_P99 = Signal(
    name="server_latency_p99",
    title="p99",
    unit=Unit.SECONDS,
    about="99 of 100 requests took the server less, once a worker had them",
    colour=Colour.P99,
    expressions={Source.PROMETHEUS: _server_latency(0.99)},
    every="2s",
)

SERVER_RATE = Signal(
    name="server_rate",
    title="finished",
    unit=Unit.REQUESTS_PER_SECOND,
    about="requests the server has finished, a second, those whose client is gone included",
    colour=Colour.GOOD,
    expressions={Source.PROMETHEUS: _increase_per_second("http_server_requests_seconds_count")},
    every="2s",
)
SERVER_ERRORS = Signal(
    name="server_errors",
    title="errors",
    unit=Unit.REQUESTS_PER_SECOND,
    about="requests the server has finished with an error of its own, a second",
    colour=Colour.FAILED,
    expressions={
        Source.PROMETHEUS: (
            _increase_per_second("http_server_requests_seconds_count", ', outcome="SERVER_ERROR"')
            + " or 0 * "
            + _increase_per_second("http_server_requests_seconds_count")
        )
    },
    every="2s",
)

# The target's machine and settings.


def _throttled_share() -> str:
    """0 where there is no quota and so no period."""
    throttled = _increase_per_second("cgroup_cpu_throttled_periods_total")
    periods = _increase_per_second("cgroup_cpu_periods_total")
    return f"{throttled} / ({periods} > 0) or 0 * {periods}"


CPU_USED = Signal(
    name="cpu_used",
    title="used",
    unit=Unit.COUNT,
    about="processor cores the target's process uses",
    colour=Colour.WORKING,
    expressions={
        Source.PROMETHEUS: (
            f"sum by (target) (process_cpu_usage{{{TARGET}}} * system_cpu_count{{{TARGET}}})"
        )
    },
    every="2s",
)
CPU_AVAILABLE = Signal(
    name="cpu_available",
    title="available",
    unit=Unit.COUNT,
    about="cores of the machine, or the quota of the target's cgroup where that is less",
    colour=Colour.LIMIT,
    expressions={
        Source.PROMETHEUS: (
            f'min by (target) ({{__name__=~"cgroup_cpu_quota_cores|system_cpu_count", {TARGET}}})'
        )
    },
    every="2s",
    limit=True,
)
CPU_THROTTLED = Signal(
    name="cpu_throttled",
    title="throttled",
    unit=Unit.SHARE,
    about="share of the scheduling periods in which the cgroup stopped the target",
    colour=Colour.TURNED_AWAY,
    expressions={Source.PROMETHEUS: _throttled_share()},
    every="2s",
)
SETTINGS = Signal(
    name="settings",
    title="effective setting",
    unit=Unit.EXACT_COUNT,
    about="the settings the target runs with, whatever it was asked for",
    colour=Colour.LIMIT,
    expressions={Source.PROMETHEUS: f"max by (target, name) (tomcat_setting{{{TARGET}}})"},
    every="2s",
)
SETTING_CHANGE = Signal(
    name="setting_change",
    title="{{name}} = {{value}}",
    unit=Unit.COUNT,
    about="a setting that differs from what it was one step before",
    colour=Colour.LIMIT,
    expressions={
        Source.PROMETHEUS: 'count_values by (target, name) ("value", '
        f"tomcat_setting{{{TARGET}}} "
        f"!= last_over_time(tomcat_setting{{{TARGET}}}[10m] offset $__interval))"
    },
    every="5s",
)

# Runs that write raw samples to InfluxDB, by the lab or by a bare `k6 run --out influxdb=…`.

RAW_REQUESTS = Signal(
    name="raw_requests",
    title="answers",
    unit=Unit.REQUESTS_PER_SECOND,
    about="raw samples of answers of any kind, a second",
    colour=Colour.GOOD,
    expressions={Source.INFLUXDB: _raw(f'count("value"){A_SECOND}', "http_reqs", LOAD, "0")},
)
RAW_FAILURES = Signal(
    name="raw_failures",
    title="failed",
    unit=Unit.REQUESTS_PER_SECOND,
    about="raw samples of requests without a good answer, a second",
    colour=Colour.FAILED,
    expressions={Source.INFLUXDB: _raw(f'sum("value"){A_SECOND}', "http_req_failed", LOAD, "0")},
)


RAW_LATENCY_P50 = Signal(
    name="raw_latency_p50",
    title="p50",
    unit=Unit.MILLISECONDS,
    about="half of the good answers were faster",
    colour=Colour.P50,
    expressions={Source.INFLUXDB: _raw('percentile("value", 50)', "http_req_duration", GOOD_LOAD)},
)
RAW_LATENCY_P99 = Signal(
    name="raw_latency_p99",
    title="p99",
    unit=Unit.MILLISECONDS,
    about="99 of 100 good answers were faster",
    colour=Colour.P99,
    expressions={Source.INFLUXDB: _raw('percentile("value", 99)', "http_req_duration", GOOD_LOAD)},
)
RAW_USERS = Signal(
    name="raw_users",
    title="users",
    unit=Unit.COUNT,
    about="virtual users running",
    colour=Colour.WORKING,
    expressions={Source.INFLUXDB: _raw('max("value")', "vus")},
)
PHASES = Signal(
    name="phases",
    title="phase",
    unit=Unit.COUNT,
    about="phases of a run as its driver wrote them, from start to end",
    colour=Colour.WORKING,
    # Not $timeFilter: a phase that began left of the window is shown as well.
    expressions={
        Source.INFLUXDB: 'SELECT "title", "text", "tags", "timeEnd" FROM "events" '
        'WHERE time <= ${__to}ms AND "timeEnd" >= ${__from} '
        'AND "testid" =~ /^${testid:regex}$/ AND "driver" =~ /^${driver:regex}$/'
    },
)
