"""Runs that write raw samples to InfluxDB, by the lab or by a bare `k6 run --out influxdb=…`."""

from spikelab.signals.core import Colour, Signal, Source, Unit

# A bare `k6 run --out influxdb=…` has no testid: its tag is empty, which "All" fits as well.
RAW = '"testid" =~ /^${testid:regex}$/ AND $timeFilter'
# Set-up and tear-down have no scenario, the lab's own phase events are no load.
LOAD = """ AND "scenario" != '' AND "name" != 'spikelab-event'"""
A_SECOND = " / $__interval_ms * 1000"
GOOD_LOAD = LOAD + " AND \"expected_response\" = 'true'"


def _raw(function: str, measurement: str, condition: str = "", empty: str = "none") -> str:
    """An InfluxQL query over k6's raw samples; `empty` is the value of a point without any."""
    return (
        f'SELECT {function} FROM "{measurement}" WHERE {RAW}{condition} '
        f"GROUP BY time($__interval) fill({empty})"
    )


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
