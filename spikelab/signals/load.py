"""The load and its answers, as the driver saw them: the normalised `loadtest:…` series."""

from spikelab.signals.core import RUN, Colour, Signal, Source, Unit


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
