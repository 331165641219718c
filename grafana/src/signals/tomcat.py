"""Where requests wait at the target, from the network to the worker, and the target's settings."""

from spikelab.signals import TARGET, Colour, Signal, Unit, peak


def increase_per_second(series: str, selector: str = "") -> str:
    """How fast a counter of the target grows."""
    return f"sum by (target) (rate({series}{{{TARGET}{selector}}}[$__rate_interval]))"


CONNECTIONS_MAXIMUM = Signal(
    name="connections_maximum",
    title="max-connections",
    unit=Unit.COUNT,
    about="connections Tomcat accepts before it leaves the rest in the accept queue",
    colour=Colour.LIMIT,
    query=f'sum by (target) (tomcat_setting{{{TARGET}, name="TOMCAT_MAX_CONNECTIONS"}})',
    every="2s",
    limit=True,
)
CONNECTIONS_HELD = Signal(
    name="connections_held",
    title="accepted",
    unit=Unit.COUNT,
    about="connections Tomcat has accepted and not closed",
    colour=Colour.CONNECTED,
    query=peak("tomcat_connections_current_connections"),
    every="2s",
)
CONNECTIONS_IDLE = Signal(
    name="connections_idle",
    title="kept alive",
    unit=Unit.COUNT,
    about="of these, connections that wait for their client's next request",
    colour=Colour.WAITING,
    query=peak("tomcat_connections_keepalive_current_connections"),
    every="2s",
)
ACCEPT_QUEUE_LIMIT = Signal(
    name="accept_queue_limit",
    title="limit",
    unit=Unit.COUNT,
    about="accept-count or somaxconn, whichever is lower; the kernel holds one more",
    colour=Colour.LIMIT,
    query=f"sum by (target) (sockets_accept_queue_limit{{{TARGET}}})",
    limit=True,
)
LISTEN_OVERFLOWS = Signal(
    name="listen_overflows",
    title="overflows",
    unit=Unit.COUNT_PER_SECOND,
    about="connection attempts that met a full accept queue, retries included",
    colour=Colour.TURNED_AWAY,
    query=increase_per_second("sockets_listen_overflows_total"),
)
LISTEN_DROPS = Signal(
    name="listen_drops",
    title="drops",
    unit=Unit.COUNT_PER_SECOND,
    about="connection attempts dropped for any reason",
    colour=Colour.FAILED,
    query=increase_per_second("sockets_listen_drops_total"),
)
CONNECTIONS_OPENED = Signal(
    name="connections_opened",
    title="opened",
    unit=Unit.COUNT_PER_SECOND,
    about="connections a second that clients began, all ports of the target's network namespace",
    colour=Colour.CONNECTED,
    query=increase_per_second("sockets_passive_opens_total"),
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
    query=_queue_wait(0.5),
    every="2s",
)
WORKER_QUEUE_WAIT_P99 = Signal(
    name="worker_queue_wait_p99",
    title="p99",
    unit=Unit.SECONDS,
    about="99 of 100 requests waited less for a worker",
    colour=Colour.P99,
    query=_queue_wait(0.99),
    every="2s",
)
THREADS_BUSY = Signal(
    name="threads_busy",
    title="busy",
    unit=Unit.COUNT,
    about="worker threads that serve a request",
    colour=Colour.WORKING,
    query=peak("tomcat_threads_busy_threads"),
    every="2s",
)
THREADS_MAXIMUM = Signal(
    name="threads_maximum",
    title="maximum",
    unit=Unit.COUNT,
    about="worker threads Tomcat may have; without a line there is no limit (virtual threads)",
    colour=Colour.LIMIT,
    query=f"sum by (target) (tomcat_threads_config_max_threads{{{TARGET}}}) < +Inf",
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
    query=_server_latency(0.5),
    every="2s",
)
SERVER_LATENCY_P99 = Signal(
    name="server_latency_p99",
    title="p99",
    unit=Unit.SECONDS,
    about="99 of 100 requests took the server less, once a worker had them",
    colour=Colour.P99,
    query=_server_latency(0.99),
    every="2s",
)

SERVER_RATE = Signal(
    name="server_rate",
    title="finished",
    unit=Unit.REQUESTS_PER_SECOND,
    about="requests the server has finished, a second, those whose client is gone included",
    colour=Colour.GOOD,
    query=increase_per_second("http_server_requests_seconds_count"),
    every="2s",
)
SERVER_ERRORS = Signal(
    name="server_errors",
    title="errors",
    unit=Unit.REQUESTS_PER_SECOND,
    about="requests the server has finished with an error of its own, a second",
    colour=Colour.FAILED,
    query=(
        increase_per_second("http_server_requests_seconds_count", ', outcome="SERVER_ERROR"')
        + " or 0 * "
        + increase_per_second("http_server_requests_seconds_count")
    ),
    every="2s",
)


# The target's machine and settings.


def _throttled_share() -> str:
    """0 where there is no quota and so no period."""
    throttled = increase_per_second("cgroup_cpu_throttled_periods_total")
    periods = increase_per_second("cgroup_cpu_periods_total")
    return f"{throttled} / ({periods} > 0) or 0 * {periods}"


CPU_USED = Signal(
    name="cpu_used",
    title="used",
    unit=Unit.COUNT,
    about="processor cores the target's process uses",
    colour=Colour.WORKING,
    query=f"sum by (target) (process_cpu_usage{{{TARGET}}} * system_cpu_count{{{TARGET}}})",
    every="2s",
)
CPU_AVAILABLE = Signal(
    name="cpu_available",
    title="available",
    unit=Unit.COUNT,
    about="cores of the machine, or the quota of the target's cgroup where that is less",
    colour=Colour.LIMIT,
    query=f'min by (target) ({{__name__=~"cgroup_cpu_quota_cores|system_cpu_count", {TARGET}}})',
    every="2s",
    limit=True,
)
CPU_THROTTLED = Signal(
    name="cpu_throttled",
    title="throttled",
    unit=Unit.SHARE,
    about="share of the scheduling periods in which the cgroup stopped the target",
    colour=Colour.TURNED_AWAY,
    query=_throttled_share(),
    every="2s",
)
SETTINGS = Signal(
    name="settings",
    title="effective setting",
    unit=Unit.EXACT_COUNT,
    about="the settings the target runs with, whatever it was asked for",
    colour=Colour.LIMIT,
    query=f"max by (target, name) (tomcat_setting{{{TARGET}}})",
    every="2s",
)
