"""Finished runs, a row each, from InfluxDB's `runs`; docs/history.md has all that it holds."""

from collections.abc import Sequence
from dataclasses import dataclass

from spikelab.signals import Colour, Signal, Source, Unit

# Of all time shown, whatever their driver was.
SHOWN = '$timeFilter AND "driver" =~ /^${driver:regex}$/ AND "plan" =~ /^${plan:regex}$/'


@dataclass(frozen=True)
class RunColumn:
    """A figure of a run as a table shows it: what a SELECT lists, its heading, how wide it is.

    Every answer of InfluxDB has a Time, which is not listed.
    One without a title is not shown; links use it. A long text can be opened.
    """

    name: str
    expression: str
    title: str = ""
    about: str = ""
    unit: Unit = Unit.EXACT_COUNT
    width_px: int = 80
    long: bool = False
    without_value: str = "-"


@dataclass(frozen=True)
class Rows:
    """Columns, and the queries that yield the rows."""

    columns: Sequence[RunColumn]
    queries: Sequence[str]
    about: str


def select(columns: Sequence[RunColumn], rest: str) -> str:
    """An InfluxQL query of columns."""
    listed = ", ".join(
        f'{column.expression} AS "{column.name}"' for column in columns if column.expression
    )
    return f"SELECT {listed} {rest}"


def _latency(name: str, about: str) -> RunColumn:
    return RunColumn(name, f'"latency_{name}_seconds"', name, about, Unit.SECONDS, 74)


COLUMNS = (
    RunColumn("Time", "", "Started", "in your browser's time zone", width_px=150),
    RunColumn(
        "verdict",
        '"verdict"',
        "Verdict",
        "of the judged steps, by the plan's objectives",
        width_px=104,
    ),
    RunColumn(
        "state",
        '"state"',
        "State",
        "invalid was measured but spoiled, aborted ended before; neither is a measurement",
        width_px=72,
    ),
    RunColumn("plan", '"plan"', "Plan", "what was run", width_px=110),
    RunColumn("driver", '"driver"', "Driver", "the load generator", width_px=66),
    RunColumn("requests", '"requests"', "Requests", "begun in the judged steps"),
    RunColumn("failures", '"failures"', "Failed", "without a good answer", width_px=70),
    RunColumn("success", '"success"', "Success", "share with a good answer", Unit.SHARE, 76),
    RunColumn(
        "rate",
        '"achieved_rate"',
        "Rate",
        "answers a second while steps ran, their drain included",
        Unit.REQUESTS_PER_SECOND,
        88,
    ),
    _latency("p50", "half of the good answers were faster; of several steps the slowest's"),
    _latency("p95", "95 of 100, likewise"),
    _latency("p99", "99 of 100, likewise"),
    RunColumn(
        "settings",
        '"settings"',
        "Settings",
        "of the target, where not the default",
        width_px=170,
        long=True,
    ),
    RunColumn("labels", '"labels"', "Labels", "given with --label", width_px=120, long=True),
    RunColumn(
        "reasons",
        '"reasons"',
        "Why",
        "why it is no measurement, and what it lacks",
        width_px=160,
        long=True,
    ),
    RunColumn("run", '"run"', "Run", "its testid, as ./lab and results/ have it", width_px=270),
    RunColumn("from", '"started_ms" - 2000'),
    RunColumn("to", '"ended_ms" + 2000'),
    RunColumn("length", '"duration_seconds" * 1000 + 2000'),
)
ALL_RUNS = Rows(
    COLUMNS,
    [select(COLUMNS, f'FROM "runs" WHERE {SHOWN} ORDER BY time DESC LIMIT 1000')],
    "runs that have ended in any way, newest first",
)


def _over_time(name: str, title: str, unit: Unit, about: str, colour: Colour, field: str) -> Signal:
    return Signal(
        name=name,
        title=title,
        unit=unit,
        about=about,
        colour=colour,
        query=(
            f'SELECT "{field}" FROM "runs" WHERE {SHOWN} AND "state" = \'valid\' GROUP BY "plan"'
        ),
        source=Source.INFLUXDB,
    )


P95_OVER_TIME = _over_time(
    "runs_p95",
    "$tag_plan",
    Unit.SECONDS,
    "p95 of good answers of each valid run, of several steps the slowest's",
    Colour.P95,
    "latency_p95_seconds",
)
RATE_OVER_TIME = _over_time(
    "runs_rate",
    "$tag_plan",
    Unit.REQUESTS_PER_SECOND,
    "answers a second of each valid run",
    Colour.GOOD,
    "achieved_rate",
)
