"""Two to four finished runs over each other, from InfluxDB's `run_series`, `runs`, `run_steps`.

`$runs` are the runs chosen, `$base` is the one of them that the others are compared with. Each
quantity is four signals, so that a run has the same colour on every panel: the base, then the
others in the order of their start.
"""

from grafana.src.signals.runs import Rows, RunColumn, select
from spikelab.signals import Colour, Signal, Source, Unit

CHOSEN = '"testid" =~ /^${runs:regex}$/'
BASE = '"testid" =~ /^${base:regex}$/'
OTHERS = f'{CHOSEN} AND "testid" !~ /^${{base:regex}}$/'
MOST_OTHERS = 3
COLOURS = (Colour.RUN_1, Colour.RUN_2, Colour.RUN_3, Colour.RUN_4)

# The newest come first; older ones can be typed.
RUN_CHOICES = 'SELECT "run" FROM "runs" WHERE time > now() - 90d ORDER BY time DESC LIMIT 200'
BASE_CHOICES = f'SELECT "run" FROM "runs" WHERE {CHOSEN}'


def _compared(
    name: str, unit: Unit, about: str, function: str, condition: str = ""
) -> tuple[Signal, ...]:
    """The base and the others, in that order."""
    chosen = [(BASE, 0), *((OTHERS, place) for place in range(MOST_OTHERS))]
    return tuple(
        Signal(
            name=f"compared_{name}_{number}",
            title="$tag_testid",
            unit=unit,
            about=about,
            colour=colour,
            query=(
                f'SELECT {function} FROM "run_series" '
                f"WHERE {which} AND $timeFilter{condition} "
                'GROUP BY time($__interval), "testid" fill(none) '
                f"SLIMIT 1 SOFFSET {place}"
            ),
            source=Source.INFLUXDB,
        )
        for number, (colour, (which, place)) in enumerate(zip(COLOURS, chosen, strict=True), 1)
    )


_ANSWERED = ' AND ("good_rate" > 0 OR "failure_rate" > 0)'

RATE = _compared(
    "rate",
    Unit.REQUESTS_PER_SECOND,
    "requests that ended, a second, with an answer or without",
    'mean("good_rate") + mean("failure_rate")',
)
LATENCY_P95 = _compared(
    "latency_p95",
    Unit.SECONDS,
    "95 of 100 good answers of a second were faster; of a longer point its worst second",
    'max("latency_p95_seconds")',
)
SUCCESS = _compared(
    "success",
    Unit.SHARE,
    "share of the requests that ended in a point which had a good answer",
    'sum("good_rate") / (sum("good_rate") + sum("failure_rate"))',
    _ANSWERED,
)


# Figures of `runs` that are set side by side: name, field, heading, meaning, unit, width.
_FIGURES = (
    ("rate", "achieved_rate", "Rate", "answers a second", Unit.REQUESTS_PER_SECOND, 86),
    ("p50", "latency_p50_seconds", "p50", "half of the good answers were faster", Unit.SECONDS, 72),
    ("p95", "latency_p95_seconds", "p95", "95 of 100 were", Unit.SECONDS, 72),
    ("p99", "latency_p99_seconds", "p99", "99 of 100 were", Unit.SECONDS, 72),
)


def _ratio(name: str) -> RunColumn:
    return RunColumn(
        f"{name}_ratio",
        f'last("o_{name}") / last("b_{name}")',
        f"{name} ÷",
        unit=Unit.COUNT,
        width_px=60,
    )


def _difference_columns() -> tuple[RunColumn, ...]:
    figures: list[RunColumn] = []
    for name, _, title, about, unit, width in _FIGURES:
        figures.append(RunColumn(name, f'last("o_{name}")', title, about, unit, width))
        figures.append(_ratio(name))
    return (
        RunColumn("run", 'last("o_run")', "Run", "the base first", width_px=244),
        RunColumn("variant", 'last("o_variant")', "Variant", "a side of its plan", width_px=76),
        RunColumn("verdict", 'last("o_verdict")', "Verdict", "its own", width_px=100),
        RunColumn(
            "state", 'last("o_state")', "State", "only valid ones are measurements", width_px=70
        ),
        RunColumn("success", 'last("o_success")', "Success", "with a good answer", Unit.SHARE, 74),
        *figures,
        RunColumn(
            "confidence",
            'last("o_confidence")',
            "Confidence",
            "that the difference is one; known where runs were repeated, never of two single runs",
            width_px=92,
            without_value="not known",
        ),
    )


def _difference(which: str, place: int) -> str:
    """One run's figures beside the base's, by which they are divided."""
    words = ("run", "variant", "verdict", "state", "success", "confidence")
    inner = {name: name for name in words} | {name: field for name, field, *_ in _FIGURES}
    own = ", ".join(f'"{field}" AS "o_{name}"' for name, field in inner.items())
    base = ", ".join(f'"{field}" AS "b_{name}"' for name, field, *_ in _FIGURES)
    columns = select(
        DIFFERENCE_COLUMNS,
        f'FROM (SELECT {own} FROM "runs" WHERE {which} ORDER BY time LIMIT 1 OFFSET {place}), '
        f'(SELECT {base} FROM "runs" WHERE {BASE})',
    )
    # Fewer than four were chosen: no row, instead of one of the base alone.
    return f"SELECT * FROM ({columns}) WHERE \"run\" != ''"


DIFFERENCE_COLUMNS = _difference_columns()
DIFFERENCES = Rows(
    DIFFERENCE_COLUMNS,
    [_difference(BASE, 0), *(_difference(OTHERS, place) for place in range(MOST_OTHERS))],
    "the runs chosen; ÷ is the figure before it, divided by the base's",
)


def _step(
    name: str, field: str, title: str, about: str, unit: Unit = Unit.EXACT_COUNT
) -> RunColumn:
    return RunColumn(name, f'"{field}"', title, about, unit, 88)


STEP_COLUMNS = (
    RunColumn("run", '"run"', "Run", "its testid", width_px=244),
    RunColumn(
        "variant", '"variant"', "Variant", "which side of the plan's comparison", width_px=90
    ),
    RunColumn("step", '"step"', "Step", "a judged phase of the plan", width_px=120),
    RunColumn("verdict", '"verdict"', "Verdict", "of the step", width_px=104),
    _step("offered", "offered_rate", "Offered", "asked for", Unit.REQUESTS_PER_SECOND),
    _step("started", "started_rate", "Started", "begun a second", Unit.REQUESTS_PER_SECOND),
    _step("throughput", "achieved_rate", "Achieved", "answered a second", Unit.REQUESTS_PER_SECOND),
    _step("requests", "requests", "Requests", "begun"),
    _step("failures", "failures", "Failed", "without a good answer"),
    _step("dropped", "dropped", "Dropped", "never begun"),
    _step("success", "success", "Success", "with a good answer", Unit.SHARE),
    _step("p50", "latency_p50_seconds", "p50", "of good answers", Unit.SECONDS),
    _step("p95", "latency_p95_seconds", "p95", "of good answers", Unit.SECONDS),
    _step("p99", "latency_p99_seconds", "p99", "of good answers", Unit.SECONDS),
    _step("drain", "drain_seconds", "Drain", "until the last answer", Unit.SECONDS),
)
STEPS = Rows(
    STEP_COLUMNS,
    [select(STEP_COLUMNS, f'FROM "run_steps" WHERE {CHOSEN} ORDER BY time LIMIT 200')],
    "the steps of the runs chosen, oldest first",
)


def _over_rate(name: str, title: str, unit: Unit, about: str, field: str) -> Signal:
    """A figure of each open-loop step over the rate that was really started."""
    return Signal(
        name=f"{name}_over_rate",
        title=title,
        unit=unit,
        about=about,
        colour=Colour.WORKING,
        query=(
            f'SELECT "curve", "started_rate" AS "{STARTED}", "{field}" AS "{title}" '
            f'FROM "run_steps" WHERE {CHOSEN} AND "offered_rate" > 0'
        ),
        source=Source.INFLUXDB,
    )


STARTED = "requests started a second"
THROUGHPUT_OVER_RATE = _over_rate(
    "throughput",
    "throughput",
    Unit.REQUESTS_PER_SECOND,
    "answers a second, the drain after the step included",
    "achieved_rate",
)
SUCCESS_OVER_RATE = _over_rate(
    "success", "success", Unit.SHARE, "share of requests with a good answer", "success"
)
P95_OVER_RATE = _over_rate(
    "p95", "p95", Unit.SECONDS, "95 of 100 good answers were faster", "latency_p95_seconds"
)
