"""Finished runs in InfluxDB, where dashboards look back at them and set them side by side.

Written when a run's record is closed: `runs` (a point a run), `run_steps` (a point a step) and
`run_series` (the load and its answers by seconds since its start); docs/history.md lists them.
"""

from collections.abc import Iterable, Mapping

from spikelab import series
from spikelab.console import warn
from spikelab.events import write_or_keep
from spikelab.record import Latency, RunRecord, Step
from spikelab.signals.core import Unit
from spikelab.stores.influxdb import InfluxDB, Value, line
from spikelab.target_settings import load_target_declaration
from spikelab.totals import Totals, success_share

_IN_HISTORY = [signal.name for signal in series.LOAD]
_LATENCIES = {signal.name for signal in series.LOAD if signal.unit is Unit.SECONDS}

Fields = dict[str, Value | None]


def write_history(
    record: RunRecord, influxdb: InfluxDB | None, drawn: series.Series | None = None
) -> None:
    """Writes a closed record's points, and those of its series where there is one.

    What InfluxDB does not take is kept beside the record, for the next command that finds it up;
    without a word where none runs.
    """
    lines = [run_line(record), *(step_line(record, step) for step in record.steps)]
    if drawn:
        lines += series_lines(record, drawn)
    if not write_or_keep(influxdb, record.testid, "history", lines) and influxdb:
        warn(
            "InfluxDB took no write: this run's history is kept and written by the next "
            "./lab run or ./lab runs that finds it up"
        )


def write_confidence(records: Iterable[RunRecord], text: str, influxdb: InfluxDB) -> None:
    """Writes what a comparison said of these runs: a field more of the points that they have."""
    kept = 0
    for record in records:
        point = line("runs", _tags(record), {"confidence": text}, _start_ms(record))
        kept += not write_or_keep(influxdb, record.testid, "confidence", [point])
    if kept:
        warn(
            f"InfluxDB took no write: the verdict on {kept} runs is kept and written by the next "
            "./lab run or ./lab runs that finds it up"
        )


def run_line(record: RunRecord) -> str:
    """The point of a run, at its start."""
    assert record.ended is not None
    figures: Fields = {}
    if record.steps:
        totals = Totals.of(record.steps)
        figures = {
            "requests": totals.requests,
            "completed": totals.completed,
            "failures": totals.failures,
            "dropped": totals.dropped,
            "success": totals.success,
            "achieved_rate": totals.achieved_rate,
            **_latencies(totals.latency),
        }
    fields: Fields = {
        "run": record.testid,
        "curve": _curve(record),
        "started_ms": _start_ms(record),
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
    return line("runs", _tags(record), fields, _start_ms(record))


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
        "success": success_share(step.requests, step.failures, step.dropped),
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


def series_lines(record: RunRecord, drawn: series.Series) -> list[str]:
    """Points by the time since the load began; each is of the time until the next one."""
    tags = _tags(record)
    names = {name: f"{name}_seconds" if name in _LATENCIES else name for name in _IN_HISTORY}
    return [
        line(
            "run_series",
            tags,
            {field: drawn.points[name][place] for name, field in names.items()},
            seconds * 1000,
        )
        for place, seconds in enumerate(drawn.seconds)
    ]


def _start_ms(record: RunRecord) -> int:
    return round(record.started.timestamp() * 1000)


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


def _latencies(latency: Latency) -> Fields:
    return {f"latency_{name}_seconds": value for name, value in latency.model_dump().items()}
