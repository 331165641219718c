"""Finished runs in InfluxDB, where dashboards look back at them and set them side by side.

Written when a run's record is closed: `runs` (a point a run), `run_steps` (a point a step) and
`run_series` (the load and its answers by seconds since its start); docs/history.md lists them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from spikelab import target_figures
from spikelab.console import warn
from spikelab.errors import LabError
from spikelab.events import write_or_keep
from spikelab.record import Latency, RunRecord, Step
from spikelab.signals import load
from spikelab.signals.core import Signal, Source
from spikelab.stores.influxdb import InfluxDB, Value, line
from spikelab.stores.prometheus import Prometheus
from spikelab.target_settings import load_target_declaration

# A longer run is thinned out: one point for so many seconds.
MOST_POINTS = 3600
SERIES = (
    load.GOOD_RATE,
    load.FAILURE_RATE,
    load.DROPPED_RATE,
    load.STARTED_RATE,
    load.OFFERED_RATE,
    load.USERS,
    load.LATENCY_P50,
    load.LATENCY_P90,
    load.LATENCY_P95,
    load.LATENCY_P99,
    load.LATENCY_P99_9,
)
# What was measured as none where nothing was recorded; of the others there is no value then.
_RATES = {signal.name for signal in SERIES[:3]}
_LATENCIES = {signal.name: f"{signal.name}_seconds" for signal in SERIES[6:]}

Fields = dict[str, Value | None]


def write_history(
    record: RunRecord, influxdb: InfluxDB, prometheus: Prometheus | None = None
) -> None:
    """Writes a closed record's points; without Prometheus all but the series.

    What InfluxDB does not take is kept beside the record, for the next command that finds it up.
    """
    lines = [run_line(record), *(step_line(record, step) for step in record.steps)]
    if prometheus:
        try:
            lines += series_lines(record, prometheus)
        except LabError as error:
            warn(f"{error}; this run cannot be drawn over others")
    if not write_or_keep(influxdb, record.testid, "history", lines):
        warn(
            "InfluxDB does not answer: this run's history is kept and written by the next "
            "./lab run or ./lab runs that finds it up"
        )


def run_line(record: RunRecord) -> str:
    """The point of a run, at its start."""
    assert record.ended is not None
    steps = record.steps
    requests = sum(step.requests for step in steps)
    failures = sum(step.failures for step in steps)
    seconds = _seconds_under_load(steps)
    figures: Fields = {}
    if steps:
        figures = {
            "requests": requests,
            "completed": sum(step.completed for step in steps),
            "failures": failures,
            "dropped": sum(step.dropped for step in steps),
            "success": _success(requests, failures),
            "achieved_rate": sum(s.completed for s in steps) / seconds if seconds else None,
            **_latencies(_worst(step.latency_seconds for step in steps)),
        }
    fields: Fields = {
        "run": record.testid,
        "curve": _curve(record),
        "started_ms": round(record.started.timestamp() * 1000),
        "ended_ms": round(record.ended.timestamp() * 1000),
        "duration_seconds": round((record.ended - record.started).total_seconds(), 3),
        "verdict": record.verdict,
        "state": _state(record),
        "reasons": "; ".join([*record.reasons, *record.warnings]),
        "settings": _settings(record),
        "labels": _listed(record.labels),
        "experiment": record.experiment,
        **figures,
        "established_peak": record.connections.established_peak,
        "connections_predicted": record.connections.predicted,
        "listen_overflows": record.connections.listen_overflows,
        "driver_cpu_cores": record.generator.cpu,
        "driver_limited": record.generator.limited,
    }
    return line("runs", _tags(record), fields, round(record.started.timestamp() * 1000))


def step_line(record: RunRecord, step: Step) -> str:
    """The point of a step, at its start."""
    fields: Fields = {
        "run": record.testid,
        "curve": _curve(record),
        "verdict": step.verdict,
        "state": _state(record),
        "repeat": step.repeat,
        "duration_seconds": round((step.ended - step.started).total_seconds(), 3),
        "offered_rate": step.offered_rate,
        "started_rate": step.started_rate,
        "achieved_rate": step.achieved_rate,
        "goodput": step.goodput,
        "requests": step.requests,
        "completed": step.completed,
        "failures": step.failures,
        "dropped": step.dropped,
        "success": _success(step.requests, step.failures),
        **_latencies(step.latency_seconds),
        "latency_mean_seconds": step.latency_mean_seconds,
        "server_mean_seconds": step.server_mean_seconds,
        "drain_seconds": step.drain_seconds,
        "start_spread_seconds": step.start_spread_seconds,
        "response_bytes_mean": step.response_bytes_mean,
        **{f"errors_{name}": count for name, count in step.errors.by_class().items()},
        "driver_cpu_cores": step.generator.cpu,
        "driver_limited": step.generator.limited,
    }
    tags = {**_tags(record), "step": step.name}
    return line("run_steps", tags, fields, round(step.started.timestamp() * 1000))


def series_lines(record: RunRecord, prometheus: Prometheus) -> list[str]:
    """Points by the time since the load began; each is of the time until the next one.

    Raises LabError when Prometheus does not answer.
    """
    assert record.ended is not None
    target_figures.settle(record.ended)
    found = _seconds_with_load(record, prometheus)
    if found is None:
        return []
    first, last = found
    step = max(1, math.ceil((last - first + 1) / MOST_POINTS))
    # A window ends with the moment it is read at: the first point is of the first second on.
    begin = first - 1
    values = {
        signal.name: prometheus.values(
            written(signal, record.testid, step), begin + step, last + step - 1, step
        )
        for signal in SERIES
    }
    tags = _tags(record)
    return [
        line("run_series", tags, _point(values, seconds), (seconds - step - begin) * 1000)
        for seconds in range(begin + step, last + step, step)
    ]


def written(signal: Signal, testid: str, step_seconds: int) -> str:
    """A signal's PromQL for one run, as Grafana would write it for points of that length."""
    expression = signal.expressions[Source.PROMETHEUS]
    for name, value in (
        ("$__interval_ms", str(step_seconds * 1000)),
        ("$__interval", f"{step_seconds}s"),
        ("$testid", testid),
        ("$driver", ".*"),
        ("$phase", ".*"),
        ("$name", ".*"),
    ):
        expression = expression.replace(name, value)
    return expression


def _seconds_with_load(record: RunRecord, prometheus: Prometheus) -> tuple[int, int] | None:
    """The first and the last second, in epoch seconds, at which Prometheus shows any load."""
    assert record.ended is not None
    end = record.ended.timestamp() + target_figures.SETTLE_SECONDS
    window = f"[{math.ceil(end - record.started.timestamp())}s:1s] @ {end:.3f}"
    run = f'{{testid="{record.testid}"}}'
    load_of = " or ".join(
        f"{series}{run} > 0"
        for series in ("loadtest:users", "loadtest:started:rate", "loadtest:requests:rate")
    )
    first = prometheus.value(f"min(min_over_time(timestamp({load_of}){window}))")
    last = prometheus.value(f"max(max_over_time(timestamp({load_of}){window}))")
    return None if first is None or last is None else (math.floor(first), math.floor(last))


def _point(values: dict[str, dict[int, float]], seconds: int) -> Fields:
    fields: Fields = {}
    for name, series in values.items():
        value = series.get(seconds, 0.0 if name in _RATES else math.nan)
        fields[_LATENCIES.get(name, name)] = value if math.isfinite(value) else None
    return fields


def _tags(record: RunRecord) -> dict[str, str]:
    tags = {"testid": record.testid, "plan": record.plan, "driver": record.driver}
    return {**tags, "variant": _variant(record)}


def _variant(record: RunRecord) -> str:
    return next((step.variant for step in record.steps if step.variant), "")


def _curve(record: RunRecord) -> str:
    """What a run's steps are one curve with: those of its variant, else its own."""
    variant = _variant(record)
    return f"{record.plan} {variant}" if variant else record.testid


def _state(record: RunRecord) -> str:
    """Invalid: measured, but spoiled. Aborted: it ended before it was measured."""
    if record.valid:
        return "valid"
    return "invalid" if record.steps else "aborted"


def _settings(record: RunRecord) -> str:
    """The target's settings that are not the defaults; run.json has all."""
    if not record.target.settings:
        return record.target.url
    defaults = load_target_declaration().resolve()
    changed = {k: v for k, v in record.target.settings.items() if defaults.get(k) != v}
    return _listed(changed) or "defaults"


def _listed(values: Mapping[str, Value]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _success(requests: int, failures: int) -> float | None:
    return (requests - failures) / requests if requests else None


def _seconds_under_load(steps: Sequence[Step]) -> float:
    """The time that the steps took, pauses between them left out."""
    seconds, until = 0.0, -math.inf
    for step in sorted(steps, key=lambda step: step.started):
        started, ended = step.started.timestamp(), step.ended.timestamp()
        seconds += max(0.0, ended - max(started, until))
        until = max(until, ended)
    return seconds


def _worst(latencies: Iterable[Latency]) -> Latency:
    """Of several steps each percentile's highest: percentiles cannot be averaged."""
    columns: dict[str, list[float]] = {}
    for latency in latencies:
        for name, seconds in latency.model_dump(exclude_none=True).items():
            columns.setdefault(name, []).append(seconds)
    return Latency(**{name: max(seconds) for name, seconds in columns.items()})


def _latencies(latency: Latency) -> Fields:
    return {f"latency_{name}_seconds": value for name, value in latency.model_dump().items()}
