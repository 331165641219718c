"""A run's series, results/<testid>/series.json: its load, its answers and the target's queues by
seconds since the load began, as Prometheus has them at the run's end.

Read once for two uses: history in InfluxDB, and reports, which need no store.
"""

import math
from datetime import UTC, datetime
from typing import Annotated, Self

from pydantic import Field, model_validator

from spikelab import signals
from spikelab.console import warn
from spikelab.errors import LabError
from spikelab.results.files import Moment, ResultFile
from spikelab.results.run import RunRecord
from spikelab.signals import LAB_TARGET, Signal
from spikelab.stores import Prometheus, gaps, inside, settle
from spikelab.units import parse_duration

SCHEMA_VERSION = 1
# A longer run is thinned out: one point for so many seconds.
MOST_POINTS = 3600
RATES = (signals.GOOD_RATE, signals.FAILURE_RATE, signals.DROPPED_RATE)
LOAD = (
    *RATES,
    signals.STARTED_RATE,
    signals.OFFERED_RATE,
    signals.USERS,
    signals.LATENCY_P50,
    signals.LATENCY_P90,
    signals.LATENCY_P95,
    signals.LATENCY_P99,
    signals.LATENCY_P99_9,
)
# Of the lab's own target alone.
QUEUES = (
    signals.WORKER_QUEUE_DEPTH,
    signals.ACCEPT_QUEUE_DEPTH,
    signals.CONNECTIONS_ESTABLISHED,
    signals.CONNECTIONS_PREDICTED,
)
# What was measured as none where nothing was recorded; of the others there is no value then.
_COUNTED = {signal.name for signal in RATES}
_DIGITS = 6


class Series(ResultFile):
    """The whole file. A point is of the `step_seconds` that follow its time; the first one is at
    `begun`. Units are those of the signals: requests a second, seconds, counts."""

    FILE = "series.json"
    NAME = "testid"
    INDENT = None

    schema_version: Annotated[int, Field(alias="schema")] = SCHEMA_VERSION
    testid: str
    begun: Annotated[Moment, Field(description="the first second with load")]
    step_seconds: Annotated[int, Field(ge=1, le=10**9)]
    points: Annotated[
        dict[str, list[float | None]],
        Field(description="by the signal's name, all of one length; null: no value"),
    ]

    @model_validator(mode="after")
    def _points_are_of_one_length(self) -> Self:
        if len({len(values) for values in self.points.values()}) != 1 or not len(self):
            raise ValueError("points: all are to have one length, and not none")
        return self

    def of(self, signal: Signal) -> list[float | None]:
        """Its points; nothing but None where the file does not have it."""
        return self.points.get(signal.name) or [None] * len(self)

    def __len__(self) -> int:
        return len(next(iter(self.points.values()), []))

    @property
    def seconds(self) -> list[int]:
        """Each point's time since `begun`."""
        return [number * self.step_seconds for number in range(len(self))]


load_series = Series.read_in


def keep_series(record: RunRecord, prometheus: Prometheus) -> None:
    """Reads an ended run's series and writes it beside the record. Without Prometheus there is
    none, which is said."""
    try:
        found = read_series(record, prometheus)
    except LabError as error:
        warn(f"{error}; this run cannot be drawn over time")
        return
    if found:
        found.save()


def read_series(record: RunRecord, prometheus: Prometheus) -> Series | None:
    """The series of a run that has ended; None where there was no load.

    Raises LabError when Prometheus does not answer.
    """
    assert record.ended is not None
    settle(prometheus, record.ended)
    found = _seconds_with_load(record, prometheus)
    if found is None:
        return None
    first, last = found
    step = max(1, math.ceil((last - first + 1) / MOST_POINTS))
    # A window ends with the moment it is read at: the first point is of the first second on.
    begin = first - 1
    moments = range(begin + step, last + step, step)
    own_target = record.target.runtime is not None
    holes = gaps(prometheus, begin, last)
    points = {}
    for signal in (*LOAD, *(QUEUES if own_target else ())):
        expression = written(signal, record.testid, max(step, _every_seconds(signal)))
        values = prometheus.values(expression, moments[0], last + step - 1, step)
        missing = 0.0 if signal.name in _COUNTED else math.nan
        points[signal.name] = [
            # There it would answer with what it had before.
            None if inside(moment, step, holes) else _finite(values.get(moment, missing))
            for moment in moments
        ]
    return Series(
        testid=record.testid,
        begun=datetime.fromtimestamp(begin, UTC),
        step_seconds=step,
        points=points,
    )


def written(signal: Signal, testid: str, step_seconds: int) -> str:
    """A signal's PromQL for one run, as Grafana would write it for points of that length."""
    expression = signal.query
    for name, value in (
        ("$__interval_ms", str(step_seconds * 1000)),
        ("$__interval", f"{step_seconds}s"),
        ("$testid", testid),
        ("$driver", ".*"),
        ("$phase", ".*"),
        ("$name", ".*"),
        ("$target", LAB_TARGET),
    ):
        expression = expression.replace(name, value)
    return expression


def _every_seconds(signal: Signal) -> int:
    """A point of less has no measurement of its own: it is the last one's."""
    return math.ceil(parse_duration(signal.every))


def _seconds_with_load(record: RunRecord, prometheus: Prometheus) -> tuple[int, int] | None:
    """The first and the last second, in epoch seconds, at which Prometheus shows any load."""
    assert record.ended is not None
    ended = record.ended.timestamp()
    window = f"[{math.ceil(ended - record.started.timestamp()) + 2}s:1s] @ {ended + 2:.3f}"
    run = f'{{testid="{record.testid}"}}'
    # The rules are evaluated every second: the first time after the end shows the last answers.
    # What a driver that is gone said last lasts longer, and no value is repeated as a later one.
    seen = " or ".join(
        f"timestamp({series}{run}) < {ended + 1:.3f} and {series}{run} > 0"
        for series in ("loadtest:users", "loadtest:started:rate", "loadtest:requests:rate")
    )
    first = prometheus.value(f"min(min_over_time(({seen}){window}))")
    last = prometheus.value(f"max(max_over_time(({seen}){window}))")
    return None if first is None or last is None else (math.ceil(first), math.ceil(last))


def _finite(value: float) -> float | None:
    return round(value, _DIGITS) if math.isfinite(value) else None
