"""The load and its answers, as the driver saw them: the normalised `loadtest:…` series."""

from spikelab.signals import PHASE, REQUEST, RUN, TARGET, Colour, Signal, Unit, latency_histogram


def _in_range(series: str, selector: str = REQUEST) -> str:
    return f"sum(sum_over_time({series}{{{selector}}}[$__range]))"


def _at_the_server(part: str) -> str:
    """Of the target's own timer; scrapes of its metrics are not load."""
    there = f'{TARGET}, uri!~"/actuator.*"'
    return f"sum(rate(http_server_requests_seconds_{part}{{{there}}}[$__rate_interval]))"


REQUESTS_IN_RANGE = Signal(
    name="requests_in_range",
    title="requests",
    unit=Unit.EXACT_COUNT,
    about="requests that ended in the time shown, counted exactly",
    colour=Colour.GOOD,
    query=_in_range("loadtest:requests:rate"),
)
FAILURES_IN_RANGE = Signal(
    name="failures_in_range",
    title="failures",
    unit=Unit.EXACT_COUNT,
    about="requests without a good answer in the time shown, counted exactly",
    colour=Colour.FAILED,
    query=_in_range("loadtest:failures:rate"),
)
DROPPED_IN_RANGE = Signal(
    name="dropped_in_range",
    title="dropped",
    unit=Unit.EXACT_COUNT,
    about="iterations never started in the time shown",
    colour=Colour.TURNED_AWAY,
    query=_in_range("loadtest:dropped:rate", PHASE),
)
LATENCY_P95_IN_RANGE = Signal(
    name="latency_p95_in_range",
    title="p95",
    unit=Unit.SECONDS,
    about="95 of 100 good answers in the time shown were faster, from when each was due or begun",
    colour=Colour.P95,
    query=f"histogram_quantile(0.95, {latency_histogram('$__range', '')})",
)
LATENCY_DISTRIBUTION = Signal(
    name="latency_distribution",
    title="good answers",
    unit=Unit.SECONDS,
    about="good answers by the moment they came and the time their users waited",
    colour=Colour.P95,
    query=latency_histogram("$__interval", ""),
)
GOOD_TOTAL = Signal(
    name="good_total",
    title="good",
    unit=Unit.COUNT,
    about="requests answered as expected since the start of the run",
    colour=Colour.GOOD,
    query=f"sum(loadtest:requests:total{{{REQUEST}}}) - sum(loadtest:failures:total{{{REQUEST}}})",
)
FAILURES_TOTAL = Signal(
    name="failures_total",
    title="failed",
    unit=Unit.COUNT,
    about="requests without a good answer since the start of the run",
    colour=Colour.FAILED,
    query=f"sum(loadtest:failures:total{{{REQUEST}}})",
)
DROPPED_TOTAL = Signal(
    name="dropped_total",
    title="never started",
    unit=Unit.COUNT,
    about="iterations the driver dropped since the start of the run",
    colour=Colour.TURNED_AWAY,
    query=f"sum(loadtest:dropped:total{{{PHASE}}})",
)
IN_FLIGHT = Signal(
    name="in_flight",
    title="in flight",
    unit=Unit.COUNT,
    about="requests begun and not yet ended; users, where the script does not count beginnings",
    colour=Colour.WORKING,
    query=(
        f"clamp_min(sum(loadtest:started:total{{{PHASE}}}) "
        f"- (sum(loadtest:requests:total{{{REQUEST}}}) or vector(0)), 0) "
        f"or sum(loadtest:users{{{RUN}}})"
    ),
)
STARTED_TOTAL = Signal(
    name="started_total",
    title="started",
    unit=Unit.COUNT,
    about="requests begun since the start of the run, where the script counts them",
    colour=Colour.LIMIT,
    query=f"sum(loadtest:started:total{{{PHASE}}})",
    limit=True,
)
UNDER_WAY = Signal(
    name="under_way",
    title="requests in flight",
    unit=Unit.COUNT,
    about="requests begun and not yet ended, where the script counts beginnings",
    colour=Colour.WAITING,
    query=(
        f"clamp_min(sum(loadtest:started:total{{{PHASE}}}) "
        f"- (sum(loadtest:requests:total{{{PHASE}}}) or vector(0)), 0)"
    ),
)
CLIENT_MEAN = Signal(
    name="client_mean",
    title="driver ({{driver}})",
    unit=Unit.SECONDS,
    about="mean time that the driver's users waited for a good answer",
    colour=Colour.P95,
    query=f"histogram_avg({latency_histogram('$__interval')})",
)
SERVER_MEAN = Signal(
    name="server_mean",
    title="server's own timer",
    unit=Unit.SECONDS,
    about="mean time from the moment a worker took a request",
    colour=Colour.SERVER,
    query=f"{_at_the_server('sum')} / {_at_the_server('count')}",
    every="2s",
)
QUEUE_WAIT_MEAN = Signal(
    name="queue_wait_mean",
    title="wait for a worker",
    unit=Unit.SECONDS,
    about="mean time in the worker queue, before the server's own timer begins",
    colour=Colour.WAITING,
    query=(
        f"histogram_avg(sum(rate(tomcat_worker_queue_wait_seconds{{{TARGET}}}[$__rate_interval])))"
    ),
    every="2s",
)
OBJECTIVES_MET = Signal(
    name="objectives_met",
    title="objectives",
    unit=Unit.EXACT_COUNT,
    about="whether every judged phase of every run meets its objectives so far",
    colour=Colour.GOOD,
    # A run that nobody judges, or not yet, may be failing: between the two that are known.
    query=(
        f"min(min by (testid) (last_over_time(lab_slo_ok{{{RUN}}}[$__range]))"
        " or 0.5 * group by (testid) "
        f"(last_over_time(loadtest:requests:total{{{RUN}}}[$__range])))"
    ),
)
DRIVER_CPU = Signal(
    name="driver_cpu",
    title="cores used ({{driver}})",
    unit=Unit.COUNT,
    about="processor cores that the driver's processes use",
    colour=Colour.WORKING,
    query=f"max by (driver) (max_over_time(lab_driver_cpu_cores{{{RUN}}}[$__interval]))",
)
DRIVER_LIMITED = Signal(
    name="driver_limited",
    title="limited ({{driver}})",
    unit=Unit.COUNT,
    about="1 while the driver is short of processor: a rate or a latency then measures the driver",
    colour=Colour.FAILED,
    query=f"max by (driver) (max_over_time(lab_driver_limited{{{RUN}}}[$__interval]))",
)
