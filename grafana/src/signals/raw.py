"""Every single request of a run, as k6 wrote it to InfluxDB.

By the lab (`--sink influxdb`) or by a bare `k6 run --out influxdb=…`, which has no testid: its tag
is empty, and "live" fits that as well. k6 stamps a sample with the time the request ended, and
writes milliseconds.
"""

from spikelab.signals import REQUEST, Colour, Signal, Source, Unit

SAMPLES = '"testid" =~ /^${testid:raw}$/ AND $timeFilter'
# Set-up and tear-down have no scenario, the lab's own phase events are no load.
LOAD = (
    SAMPLES + """ AND "scenario" != '' AND "name" != 'spikelab-event'"""
    ' AND "scenario" =~ /^${phase:regex}$/ AND "name" =~ /^${name:regex}$/'
)
GOOD = LOAD + " AND \"expected_response\" = 'true'"
FAILED = LOAD + " AND \"expected_response\" = 'false'"
OF_K6 = f'{{{REQUEST}, driver="k6"}}'
# As many as a browser draws with ease.
MOST_POINTS = 5000


def _over_time(function: str, measurement: str, condition: str, empty: str = "none") -> str:
    """A point a step; `empty` is the value of one without samples."""
    return (
        f'SELECT {function} FROM "{measurement}" WHERE {condition} '
        f"GROUP BY time($__interval) fill({empty})"
    )


def _figure(function: str, measurement: str, condition: str) -> str:
    """One value for the time shown."""
    return f'SELECT {function} FROM "{measurement}" WHERE {condition}'


def _points(measurement: str, condition: str, name: str) -> str:
    """Samples as they are; of more than the most a random choice over the whole time shown."""
    function = f'sample("value", {MOST_POINTS}) AS "{name}"'
    return _figure(function, measurement, condition)


# Each request.

RAW_DURATIONS = Signal(
    name="raw_durations",
    title="duration",
    unit=Unit.MILLISECONDS,
    about=(
        "a request at the moment it ended; answered: as expected; failed: not, or not at all, and "
        "at 0 where no connection came about, for k6 does not time that"
    ),
    colour=Colour.GOOD,
    # One result with two columns: two results would be joined by millisecond, one point each.
    query=(
        f'SELECT "answered", "failed" FROM '
        f"({_points('http_req_duration', GOOD, 'answered')}), "
        f"({_points('http_req_duration', FAILED, 'failed')})"
    ),
    source=Source.INFLUXDB,
    colours={"answered": Colour.GOOD, "failed": Colour.FAILED},
)
RAW_CONNECTING = Signal(
    name="raw_connecting",
    title="connecting",
    unit=Unit.MILLISECONDS,
    about="a connection at the moment its first request ended, and how long it took to establish",
    colour=Colour.CONNECTED,
    query=_points("http_req_connecting", LOAD + ' AND "value" > 0', "connecting"),
    source=Source.INFLUXDB,
    colours={"connecting": Colour.CONNECTED},
)
RAW_OUTCOMES = Signal(
    name="raw_outcomes",
    title="requests",
    unit=Unit.EXACT_COUNT,
    about="requests by the status of their answer and k6's error code",
    colour=Colour.GOOD,
    query=(
        _figure('count("value") AS "requests"', "http_req_duration", LOAD)
        + ' GROUP BY "status", "error_code"'
    ),
    source=Source.INFLUXDB,
)
# What k6's error codes mean for a target of ours; 1000 + status where there was an answer.
ERROR_CODES = {
    "1000": "closed without an answer",
    "1010": "network error",
    "1020": "wrong URL",
    "1050": "no answer in time",
    "1101": "name not found",
    "1110": "address not allowed",
    "1201": "reset while sending",
    "1211": "no connection in time",
    "1212": "connection refused",
    "1213": "no port or file left",
    "1220": "reset by the target",
    "1310": "unknown certificate",
    "1311": "certificate of another name",
}


# Figures of the time shown.


def _quantile(name: str, function: str, about: str, colour: Colour) -> Signal:
    return Signal(
        name=f"raw_{name}_in_range",
        title=name.replace("_", "."),
        unit=Unit.MILLISECONDS,
        about=about,
        colour=colour,
        query=_figure(function, "http_req_duration", GOOD),
        source=Source.INFLUXDB,
    )


RAW_PERCENTILES = (
    _quantile("p50", 'percentile("value", 50)', "half of the good answers were faster", Colour.P50),
    _quantile("p90", 'percentile("value", 90)', "90 of 100 were faster", Colour.P90),
    _quantile("p95", 'percentile("value", 95)', "95 of 100 were faster", Colour.P95),
    _quantile("p99", 'percentile("value", 99)', "99 of 100 were faster", Colour.P99),
    _quantile("p99_9", 'percentile("value", 99.9)', "999 of 1,000 were faster", Colour.P99_9),
    _quantile("max", 'max("value")', "the slowest good answer", Colour.LIMIT),
)
RAW_STORED = Signal(
    name="raw_stored",
    title="stored",
    unit=Unit.EXACT_COUNT,
    about="requests in InfluxDB, with an answer or without",
    colour=Colour.WORKING,
    query=_figure('sum("value")', "http_reqs", LOAD),
    source=Source.INFLUXDB,
)
RAW_FAILED = Signal(
    name="raw_failed",
    title="failed",
    unit=Unit.EXACT_COUNT,
    about="of these, without a good answer",
    colour=Colour.FAILED,
    query=_figure('sum("value")', "http_req_failed", LOAD),
    source=Source.INFLUXDB,
)
# Whether all of them are here. A run that has ended keeps its last total.

_LAST = f"last_over_time(loadtest:requests:total{OF_K6}[$__range])"
_LAST_BEFORE = f"last_over_time(loadtest:requests:total{OF_K6}[$__range] @ start())"

STORED_BY_RUN = Signal(
    name="stored_by_run",
    title="stored",
    unit=Unit.EXACT_COUNT,
    about="requests in InfluxDB",
    colour=Colour.WORKING,
    query=(_figure('sum("value") AS "stored"', "http_reqs", LOAD) + ' GROUP BY "testid"'),
    source=Source.INFLUXDB,
)
COUNTED_BY_RUN = Signal(
    name="counted_by_run",
    title="counted",
    unit=Unit.EXACT_COUNT,
    about="requests of the same run in Prometheus, whose driver counts on when a push is lost",
    colour=Colour.LIMIT,
    query=f"sum by (testid) (sum_over_time(loadtest:requests:rate{OF_K6}[$__range]))",
)
COUNTED_SO_FAR = Signal(
    name="counted_so_far",
    title="counted",
    unit=Unit.COUNT,
    about="requests Prometheus has counted, a second or two after they ended",
    colour=Colour.LIMIT,
    query=f"sum({_LAST} - ({_LAST_BEFORE} or 0 * {_LAST}))",
    limit=True,
)
STORED_SO_FAR = Signal(
    name="stored_so_far",
    title="stored",
    unit=Unit.COUNT,
    about="requests InfluxDB has a sample of",
    colour=Colour.WORKING,
    query=_over_time('cumulative_sum(sum("value"))', "http_reqs", LOAD, empty="0"),
    source=Source.INFLUXDB,
)
FAILED_SO_FAR = Signal(
    name="failed_so_far",
    title="failed",
    unit=Unit.COUNT,
    about="of these, without a good answer",
    colour=Colour.FAILED,
    query=(_over_time('cumulative_sum(sum("value"))', "http_req_failed", LOAD, empty="0")),
    source=Source.INFLUXDB,
)
SAMPLE_GAP = Signal(
    name="sample_gap",
    title="since the sample before",
    unit=Unit.MILLISECONDS,
    about="k6 writes its number of users once a second, with all samples of that second",
    colour=Colour.TURNED_AWAY,
    query=(
        'SELECT max("elapsed") FROM (SELECT elapsed("value", 1ms) AS "elapsed" FROM "vus" '
        f'WHERE {SAMPLES} GROUP BY "testid") WHERE $timeFilter '
        "GROUP BY time($__interval) fill(none)"
    ),
    source=Source.INFLUXDB,
)


# Over time.


def _latency(percentile: int, colour: Colour) -> Signal:
    function = f'percentile("value", {percentile})'
    return Signal(
        name=f"raw_latency_p{percentile}",
        title=f"p{percentile}",
        unit=Unit.MILLISECONDS,
        about=f"{percentile} of 100 good answers were faster",
        colour=colour,
        query=_over_time(function, "http_req_duration", GOOD),
        source=Source.INFLUXDB,
    )


RAW_LATENCY = (_latency(50, Colour.P50), _latency(95, Colour.P95), _latency(99, Colour.P99))


def _part(name: str, title: str, about: str, colour: Colour) -> Signal:
    return Signal(
        name=f"raw_{name}",
        title=title,
        unit=Unit.MILLISECONDS,
        about=about,
        colour=colour,
        query=_over_time('mean("value")', f"http_req_{name}", GOOD),
        source=Source.INFLUXDB,
    )


RAW_PARTS = (
    _part("blocked", "connection", "until there was a connection to send on", Colour.CONNECTED),
    _part("waiting", "first byte", "from the request sent to its first byte", Colour.WAITING),
    _part("receiving", "answer", "from the first byte to the last", Colour.WORKING),
)
RAW_USERS = Signal(
    name="raw_users",
    title="users",
    unit=Unit.COUNT,
    about="virtual users running",
    colour=Colour.WORKING,
    query=_over_time('max("value")', "vus", SAMPLES),
    source=Source.INFLUXDB,
)
