"""What authorization costs: decisions, the time of each step, look-ups, revocations, the broker."""

from dataclasses import replace
from functools import partial

from grafana.src.signals.tomcat import increase_per_second
from spikelab.signals import TARGET, Colour, Signal, Source, Unit, latency_histogram

_EVERY = "2s"
_PATH = "/api/v1/authz/ping"
_CHECK = "ext_authz_request_duration_seconds"
_VERIFY = "ext_authz_jwt_verify_duration_seconds"
_LOCAL = "ext_authz_blacklist_cache_lookup_duration_seconds"
_REDIS = "ext_authz_blacklist_redis_lookup_duration_seconds"


def _quantile(quantile: float, histogram: str) -> str:
    """None where nothing was timed, for which Prometheus gives NaN."""
    return (
        f"histogram_quantile({quantile}, "
        f"sum by (target) (rate({histogram}{{{TARGET}}}[$__rate_interval]))) >= 0"
    )


def _rate(histogram: str) -> str:
    return f"sum(rate({histogram}{{{TARGET}}}[$__rate_interval]))"


# Of all targets together, as a driver's mean has no label of a target.
_CHECKS = f"(histogram_count({_rate(_CHECK)}) > 0)"


def _mean(histogram: str) -> str:
    """Seconds a check spends there, checks that do not come so far included: so parts add up."""
    return f"((histogram_sum({_rate(histogram)}) or vector(0)) / {_CHECKS})"


def _server_mean() -> str:
    seconds = f'http_server_requests_seconds_sum{{{TARGET}, uri="{_PATH}"}}[$__rate_interval]'
    count = seconds.replace("_sum{", "_count{")
    return f"(sum(rate({seconds})) / (sum(rate({count})) > 0))"


def _client_mean() -> str:
    answers = latency_histogram("$__interval", "")
    return f"(histogram_sum({answers}) / (histogram_count({answers}) > 0))"


def _look_ups(found: str) -> str:
    """By the place that was asked; each has a counter of its own."""
    local, redis = (
        increase_per_second(f"ext_authz_blacklist_{place}_{found}_total")
        for place in ("cache", "redis")
    )
    return (
        f'label_replace({local}, "place", "local", "", "") '
        f'or label_replace({redis}, "place", "Redis", "", "")'
    )


_shown = partial(Signal, every=_EVERY)

# Decisions.

ALLOWED_RATE = _shown(
    "allowed_rate",
    "allowed",
    Unit.REQUESTS_PER_SECOND,
    "checks that let the request through, a second",
    Colour.GOOD,
    increase_per_second("ext_authz_requests_total", ', decision="allow"'),
)
_DENIED = (
    "sum by (target, reason) "
    f'(rate(ext_authz_requests_total{{{TARGET}, decision="deny"}}[$__rate_interval]))'
)
DENIED_RATE = Signal(
    name="denied_rate",
    title="denied ({{reason}})",
    unit=Unit.REQUESTS_PER_SECOND,
    about="checks that did not, a second, by the first reason found",
    colour=Colour.TURNED_AWAY,
    # Only the reasons there are, of more than a dozen.
    query=(
        f"{_DENIED} > 0 or on (target) label_replace("
        f'0 * sum by (target) ({_DENIED}), "reason", "none", "", "")'
    ),
    every=_EVERY,
    colours={
        "denied (expired)": Colour.WAITING,
        "denied (revoked)": Colour.REFUSED,
        "denied (blacklist_full)": Colour.FAILED,
        "denied (blacklist_unavailable)": Colour.RESET,
    },
)
# Times.

CHECK_P99 = _shown(
    "check_p99",
    "whole check",
    Unit.SECONDS,
    "99 of 100 checks took less, all of their steps included",
    Colour.P99,
    _quantile(0.99, _CHECK),
)
VERIFY_P99 = _shown(
    "verify_p99",
    "JWT",
    Unit.SECONDS,
    "99 of 100 tokens were parsed and their signature and claims verified in less",
    Colour.WORKING,
    _quantile(0.99, _VERIFY),
)
LOCAL_P99 = _shown(
    "local_look_up_p99",
    "local look-up",
    Unit.SECONDS,
    "99 of 100 look-ups in the target's memory took less",
    Colour.PREDICTED,
    _quantile(0.99, _LOCAL),
)
REDIS_P99 = _shown(
    "redis_look_up_p99",
    "Redis look-up",
    Unit.SECONDS,
    "99 of 100 look-ups in Redis took less, those without an answer included",
    Colour.WAITING,
    _quantile(0.99, _REDIS),
)
# Beside a p50 the percentile is what differs.
LOCAL_P99_OF_LOOK_UP, REDIS_P99_OF_LOOK_UP = (
    replace(signal, title=f"{place} p99")
    for signal, place in ((LOCAL_P99, "local"), (REDIS_P99, "Redis"))
)
LOCAL_P50 = _shown(
    "local_look_up_p50",
    "local p50",
    Unit.SECONDS,
    "half of the look-ups in the target's memory took less",
    Colour.P50,
    _quantile(0.5, _LOCAL),
)
REDIS_P50 = _shown(
    "redis_look_up_p50",
    "Redis p50",
    Unit.SECONDS,
    "half of the look-ups in Redis took less",
    Colour.P50,
    _quantile(0.5, _REDIS),
)
TIMER_COST = _shown(
    "timer_cost",
    "timer",
    Unit.SECONDS,
    "what a timer reads with nothing to time: it is in every time of this dashboard",
    Colour.LIMIT,
    f"max by (target) (ext_authz_timer_cost_seconds{{{TARGET}}})",
    limit=True,
)
TIMER_COST_NOW = _shown(
    "timer_cost_now",
    "timer",
    Unit.SECONDS,
    "median reading of a timer with nothing to time, measured once after the target's start",
    Colour.LIMIT,
    f"max(ext_authz_timer_cost_seconds{{{TARGET}}})",
)
# The mean of an answer, from the inside out.

VERIFY_MEAN = _shown(
    "verify_mean",
    "JWT verification",
    Unit.SECONDS,
    "parsing, signature and claims",
    Colour.WORKING,
    _mean(_VERIFY),
)
LOOK_UP_MEAN = _shown(
    "look_up_mean",
    "look-up",
    Unit.SECONDS,
    "the blacklist, in memory or in Redis",
    Colour.PREDICTED,
    f"{_mean(_LOCAL)} + {_mean(_REDIS)}",
)
CHECK_REST_MEAN = _shown(
    "check_rest_mean",
    "rest of the check",
    Unit.SECONDS,
    "what a check takes besides these two",
    Colour.P50,
    f"clamp_min({_mean(_CHECK)} - {_mean(_VERIFY)} - {_mean(_LOCAL)} - {_mean(_REDIS)}, 0)",
)
SERVER_REST_MEAN = _shown(
    "server_rest_mean",
    "rest of the server",
    Unit.SECONDS,
    "what the server's own time for these requests has beyond the check",
    Colour.SERVER,
    f"clamp_min({_server_mean()} - {_mean(_CHECK)}, 0)",
)
OUTSIDE_MEAN = _shown(
    "outside_mean",
    "outside the server",
    Unit.SECONDS,
    "what users waited in the mean, less the server's: connecting, network, queues",
    Colour.OTHER,
    f"clamp_min({_client_mean()} - {_server_mean()}, 0)",
)
# The blacklist.

MISSES_RATE = _shown(
    "misses_rate",
    "not found ({{place}})",
    Unit.COUNT_PER_SECOND,
    "look-ups that did not find the token, so that it is let through, a second",
    Colour.GOOD,
    _look_ups("misses"),
)
HITS_RATE = _shown(
    "hits_rate",
    "revoked ({{place}})",
    Unit.COUNT_PER_SECOND,
    "look-ups that found the token revoked, a second",
    Colour.TURNED_AWAY,
    _look_ups("hits"),
)
BLACKLIST_PLACE = _shown(
    "blacklist_place",
    "place",
    Unit.EXACT_COUNT,
    "AUTHZ_BLACKLIST: where the target looks a token up",
    Colour.WORKING,
    f'max(tomcat_setting{{{TARGET}, name="AUTHZ_BLACKLIST"}})',
)
BLACKLIST_ENTRIES_NOW = _shown(
    "blacklist_entries_now",
    "entries",
    Unit.COUNT,
    "revoked tokens in the target's memory that have not expired",
    Colour.CONNECTED,
    f"sum(ext_authz_blacklist_cache_size{{{TARGET}}})",
)
BLACKLIST_FILLED = _shown(
    "blacklist_filled",
    "filled",
    Unit.SHARE,
    "entries as a share of TARGET_AUTHZ_BLACKLIST_MAX_ENTRIES",
    Colour.CONNECTED,
    f"sum by (target) (ext_authz_blacklist_cache_size{{{TARGET}}}) / sum by (target) "
    f'(tomcat_setting{{{TARGET}, name="TARGET_AUTHZ_BLACKLIST_MAX_ENTRIES"}})',
)
BLACKLIST_FULL = _shown(
    "blacklist_full",
    "refuses all",
    Unit.SHARE,
    "100 % while a revocation had no room, for which every token is refused",
    Colour.FAILED,
    f"max by (target) (ext_authz_blacklist_full{{{TARGET}}})",
)
REVOCATIONS_RATE = Signal(
    name="revocations_rate",
    title="logout ({{result}})",
    unit=Unit.COUNT_PER_SECOND,
    about="revocations asked for, a second, by what became of them",
    colour=Colour.TURNED_AWAY,
    query=(
        f"sum by (target, result) (rate(ext_authz_revocations_total{{{TARGET}}}[$__rate_interval]))"
    ),
    every=_EVERY,
    colours={
        "logout (accepted)": Colour.GOOD,
        "logout (blacklist_full)": Colour.FAILED,
        "logout (blacklist_unavailable)": Colour.RESET,
    },
)
EXPIRED_RATE = _shown(
    "expired_rate",
    "expired",
    Unit.COUNT_PER_SECOND,
    "entries dropped because their token has expired, a second",
    Colour.LIMIT,
    increase_per_second("ext_authz_blacklist_cache_evictions_total"),
)
# The broker, which only a target with `local` and a Redis has.

BROKERS_LOST = _shown(
    "brokers_lost",
    "without a broker",
    Unit.EXACT_COUNT,
    "targets that should follow the stream of revocations and have lost it",
    Colour.FAILED,
    f"sum(1 - ext_authz_blacklist_broker_connected{{{TARGET}}}) "
    f"or 0 * sum(ext_authz_blacklist_full{{{TARGET}}})",
)
RECEIVED_RATE = _shown(
    "broker_received_rate",
    "received",
    Unit.COUNT_PER_SECOND,
    "revocations that came from the stream, those made here included, a second",
    Colour.GOOD,
    increase_per_second("ext_authz_blacklist_broker_received_total"),
)
BROKER_FAILED_RATE = _shown(
    "broker_failed_rate",
    "failed",
    Unit.COUNT_PER_SECOND,
    "entries of the stream that were no revocation or had no room, a second",
    Colour.FAILED,
    increase_per_second("ext_authz_blacklist_broker_failed_total"),
)
RECONNECTS_RATE = _shown(
    "broker_reconnects_rate",
    "reconnects",
    Unit.COUNT_PER_SECOND,
    "connections made again after one was lost, a second",
    Colour.TURNED_AWAY,
    increase_per_second("ext_authz_blacklist_broker_reconnects_total"),
)
PENDING = _shown(
    "broker_pending",
    "pending",
    Unit.COUNT,
    "revocations made here that the stream does not have yet",
    Colour.WAITING,
    f"sum by (target) (max_over_time(ext_authz_blacklist_broker_pending{{{TARGET}}}[$__interval]))",
)

EVENTS = Signal(
    name="events",
    title="event",
    unit=Unit.COUNT,
    about="phases as their driver wrote them; open until they have ended",
    colour=Colour.WORKING,
    # Not $timeFilter: a phase that began left of the window is listed as well.
    query=(
        'SELECT "phase", "text", "state", "driver", "testid" FROM "events" '
        'WHERE time <= ${__to}ms AND "timeEnd" >= ${__from} '
        'AND "testid" =~ /^${testid:raw}$/ AND "driver" =~ /^${driver:regex}$/ '
        'AND "phase" =~ /^${phase:regex}$/ ORDER BY time DESC LIMIT 50'
    ),
    source=Source.INFLUXDB,
)
