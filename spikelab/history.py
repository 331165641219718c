"""What InfluxDB keeps of runs, for the dashboards that look back at them: docs/history.md.

Every point is made from the files of a run's folder: `runs` (a point a run) and `run_steps` (a
point a step) from run.json, `run_series` from series.json, `events` (a point a phase) from
plan.json and the driver's summary; a run's `confidence` is from comparison.json. What InfluxDB did
not take is therefore kept nowhere else: the folder gets a mark, and the next command that finds
InfluxDB up writes all points of that run.

Raw samples are the drivers' and grow without end: they alone are deleted, by their age. A shorter
retention policy would take phases and runs as well, as published k6 commands write into the
database's own.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from math import inf
from typing import Any

from spikelab import paths
from spikelab.console import warn, working
from spikelab.drivers import DRIVERS
from spikelab.drivers.base import PhaseSummary, from_epoch_ms
from spikelab.errors import LabError, UsageError
from spikelab.plans.model import Phase
from spikelab.results.comparison import ComparisonRecord
from spikelab.results.run import (
    Latency,
    RunRecord,
    Step,
    Totals,
)
from spikelab.series import LOAD, Series, load_series
from spikelab.settings import load_target_declaration
from spikelab.signals import Unit
from spikelab.stores import FieldValue, InfluxDB, line

# Beside the record of a run of which InfluxDB lacks points.
OWED = "history.owed"

Fields = dict[str, FieldValue | None]


def write_history(record: RunRecord, influxdb: InfluxDB | None) -> None:
    """Writes all points of a closed record.

    What InfluxDB does not take stays owed; without a word where none runs.
    """
    try:
        if influxdb:
            _write_run(record, influxdb)
            return
    except LabError as error:
        warn(str(error))
        warn(
            "InfluxDB took no write: this run's history is kept and written by the next "
            "./lab run or ./lab runs that finds it up"
        )
    _owe(record)


def write_phases(record: RunRecord, influxdb: InfluxDB) -> int:
    """Writes the phases of a run that its driver has ended, so that none is missing or open;
    returns how many stay owed because that failed."""
    lines = _phase_lines(record)
    return 0 if not lines or _takes(influxdb, record, lines) else len(lines)


def write_confidence(comparison: ComparisonRecord, influxdb: InfluxDB) -> None:
    """Writes what a comparison said of the runs of B: a field more of the points that they have.

    Identical arms say nothing of a run, nor do imported ones have a history.
    """
    if comparison.confidence is None:
        return
    owed = 0
    for record in filter(None, map(RunRecord.read, comparison.b.runs)):
        fields: Fields = {"confidence": comparison.confidence}
        point = line("runs", _tags(record), fields, _ms(record.started))
        owed += not (record.imported or _takes(influxdb, record, [point]))
    if owed:
        warn(
            f"InfluxDB took no write: the verdict on {owed} runs is kept and written by the next "
            "./lab run or ./lab runs that finds it up"
        )


def write_owed(influxdb: InfluxDB) -> None:
    """Writes all points of the runs of which InfluxDB lacks some; what it does not take stays
    owed."""
    marks = sorted(paths.RESULTS.glob(f"*/{OWED}"))
    said = _confidences() if marks else {}
    for mark in marks:
        record = RunRecord.read(mark.parent.name)
        if record and record.ended:
            with suppress(LabError):
                _write_run(record, influxdb, said.get(record.testid))


def rebuild(influxdb: InfluxDB) -> tuple[int, int]:
    """Writes the history of all ended runs under results/ again, over what is there; returns the
    numbers of runs and of points. Imported runs have none. A run that InfluxDB refuses is named in
    a warning.

    Raises LabError when InfluxDB does not answer.
    """
    influxdb.create_database()
    said = _confidences()
    points = []
    for record in RunRecord.read_all():
        if record.imported or not record.ended:
            continue
        try:
            points.append(_write_run(record, influxdb, said.get(record.testid)))
        except LabError as error:
            # Raises where it no longer answers.
            influxdb.create_database()
            warn(f"{record.testid}: {error}")
    return len(points), sum(points)


def _write_run(record: RunRecord, influxdb: InfluxDB, confidence: str | None = None) -> int:
    """Writes all points of a run, after which nothing is owed; returns how many. Raises LabError.

    The phases of an aborted run are those that its driver wrote.
    """
    drawn = load_series(record.folder)
    lines = [
        run_line(record, confidence),
        *(step_line(record, step) for step in record.steps),
        *(series_lines(record, drawn) if drawn else ()),
        *_phase_lines(record),
    ]
    # First: a point that is refused must not leave a phase open.
    ended = [] if record.steps else _cut_off_lines(record, influxdb)
    if ended:
        influxdb.write("\n".join(ended))
    influxdb.write("\n".join(lines))
    (record.folder / OWED).unlink(missing_ok=True)
    return len(lines) + len(ended)


def _takes(influxdb: InfluxDB, record: RunRecord, lines: Sequence[str]) -> bool:
    """Whether InfluxDB takes these points of a run; else they are owed."""
    try:
        influxdb.write("\n".join(lines))
    except LabError as error:
        warn(str(error))
        _owe(record)
        return False
    return True


def _owe(record: RunRecord) -> None:
    (record.folder / OWED).touch()


def _confidences() -> dict[str, str]:
    """By testid, what the last comparison said of the run."""
    found = {}
    for comparison in sorted(ComparisonRecord.read_all(), key=lambda each: each.created):
        if comparison.confidence:
            found.update(dict.fromkeys(comparison.b.runs, comparison.confidence))
    return found


def run_line(record: RunRecord, confidence: str | None = None) -> str:
    """The point of a run, at its start; `confidence`: what a comparison said of it."""
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
            **_latencies(totals.latency_seconds),
        }
    fields: Fields = {
        "run": record.testid,
        "curve": _curve(record),
        "started_ms": _ms(record.started),
        "ended_ms": _ms(record.ended),
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
        "confidence": confidence,
    }
    return line("runs", _tags(record), fields, _ms(record.started))


def step_line(record: RunRecord, step: Step) -> str:
    """The point of a step, at its start."""
    fields: Fields = {
        "run": record.testid,
        "curve": _curve(record),
        "verdict": step.verdict,
        "state": _state(record),
        "repeat": step.repeat,
        "duration_seconds": round(step.seconds, 3),
        "offered_rate": step.offered_rate,
        "started_rate": step.started_rate,
        "achieved_rate": step.achieved_rate,
        "goodput": step.goodput,
        "requests": step.requests,
        "completed": step.completed,
        "failures": step.failures,
        "dropped": step.dropped,
        "success": step.success,
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
    return line("run_steps", tags, fields, _ms(step.started))


def series_lines(record: RunRecord, drawn: Series) -> list[str]:
    """Points by the time since the load began; each is of the time until the next one. While
    Prometheus was away there is none: InfluxDB refuses a point without a field."""
    tags = _tags(record)
    columns = {
        signal.name + ("_seconds" if signal.unit is Unit.SECONDS else ""): drawn.of(signal)
        for signal in LOAD
    }
    lines = []
    for place, seconds in enumerate(drawn.seconds):
        fields = {name: values[place] for name, values in columns.items()}
        if any(value is not None for value in fields.values()):
            lines.append(line("run_series", tags, fields, seconds * 1000))
    return lines


def _tags(record: RunRecord) -> dict[str, str]:
    return {
        "testid": record.testid,
        "plan": record.plan,
        "driver": record.driver,
        "variant": record.variant,
    }


def _curve(record: RunRecord) -> str:
    """What a run's steps are one curve with: those of its variant, else its own."""
    return f"{record.plan} {record.variant}" if record.variant else record.testid


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


def _listed(values: Mapping[str, FieldValue]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _latencies(latency: Latency) -> Fields:
    return {f"latency_{name}_seconds": value for name, value in latency.model_dump().items()}


def _phase_lines(record: RunRecord) -> list[str]:
    """The points of the phases of a measured run, which overwrite what its driver wrote while they
    happened; none where its files cannot be read."""
    driver = next((driver for driver in DRIVERS if driver.name == record.driver), None)
    if not record.steps or driver is None:
        return []
    with suppress(OSError, ValueError, KeyError, TypeError, ArithmeticError, LabError):
        phases = _phases(record)
        if record.latency_basis in ("http_req_duration", "request"):
            return _phase_lines_of_schema_1(record, phases, driver.summary_file)
        happened = driver.read_summary(record.folder, phases)
        spike = any(step.start_spread_seconds is not None for step in record.steps)
        return [
            phase_line(record, phase, each, spike)
            for phase, each in zip(phases, happened, strict=True)
        ]
    return []


def _phase_lines_of_schema_1(
    record: RunRecord, phases: Sequence[Phase], summary_file: str
) -> list[str]:
    """The same from a summary that a driver wrote before schema 2: when each phase began is all
    that is read of it."""
    summary = json.loads((record.folder / summary_file).read_bytes())
    if record.driver == "k6":
        run_ms = float(summary["setup_data"]["started_ms"])
        begun_ms = {phase.name: run_ms + phase.start_seconds * 1000 for phase in phases}
    else:
        begun_ms = {phase["name"]: float(phase["started_ms"]) for phase in summary["phases"]}
    spikes = {step.phase: step.ended for step in record.steps if step.spike}
    return [
        _phase_line(record, phase, from_epoch_ms(begun_ms[phase.name]), spikes.get(phase.name))
        for phase in phases
    ]


def phase_line(record: RunRecord, phase: Phase, happened: PhaseSummary, spike: bool) -> str:
    """The point of a phase, at its start. It lasts as long as planned, of a spike until the last
    answer. Testid, driver, phase and start make the point that it is."""
    return _phase_line(record, phase, happened.begun, happened.ended if spike else None)


def _phase_line(record: RunRecord, phase: Phase, begun: datetime, ended: datetime | None) -> str:
    planned = begun + timedelta(seconds=phase.duration_seconds)
    fields: Fields = {
        "title": phase.name,
        "text": f"{phase.value:.10g} {phase.kind}",
        "tags": f"{record.driver},{phase.kind}",
        "state": "closed",
        "timeEnd": _ms(ended or planned),
    }
    tags = {"driver": record.driver, "phase": phase.name, "testid": record.testid}
    return line("events", tags, fields, _ms(begun))


def _cut_off_lines(record: RunRecord, influxdb: InfluxDB) -> list[str]:
    """What ends the phases that an aborted run's driver wrote: they end with the run, as `aborted`;
    those that were over by then are closed. Raises LabError."""
    assert record.ended is not None
    ended_ms = _ms(record.ended)
    planned_ms: dict[str, float] = {}
    with suppress(OSError, ValueError, KeyError, TypeError):
        planned_ms = {each.name: each.duration_seconds * 1000 for each in _phases(record)}
    rows = influxdb.query(f"SELECT * FROM events WHERE testid = '{record.testid}'")
    return [_ended_line(row, ended_ms, planned_ms.get(row["phase"], inf)) for row in rows]


def _ended_line(row: Mapping[str, Any], ended_ms: int, planned_ms: float) -> str:
    fields: Fields = {
        "state": "aborted" if row["time"] + planned_ms > ended_ms else "closed",
        "timeEnd": min(ended_ms, row["timeEnd"]),
    }
    tags = {name: row[name] for name in ("driver", "phase", "testid")}
    return line("events", tags, fields, row["time"])


def _phases(record: RunRecord) -> list[Phase]:
    """Of the plan that the driver got."""
    plan = json.loads((record.folder / "plan.json").read_bytes())
    return [Phase.model_validate(phase) for phase in plan["phases"]]


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


VARIABLE = "INFLUXDB_RAW_RETENTION"
# Everything that the lab and its drivers' phases write.
_STAYS = ("events", "runs", "run_steps", "run_series")
_AGE = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 7 * 24}
# InfluxDB counts nanoseconds in 64 bits with a sign: 292 years.
_MOST_HOURS = (2**63 - 1) // (3600 * 10**9)
_DELETE_SECONDS = 120


def require_age(text: str) -> str:
    """An age in InfluxQL, or 0. Raises UsageError."""
    found = _AGE.fullmatch(text)
    if found and int(found[1]) * _HOURS[found[2]] > _MOST_HOURS:
        raise UsageError(
            f"{VARIABLE}={text}: is more than the 292 years that InfluxDB counts; 0 is for ever "
            "(compose/.env)"
        )
    if found or text == "0":
        return text
    raise UsageError(
        f"{VARIABLE}={text}: must be an age such as 30d, 12h or 4w, or 0 for ever (compose/.env)"
    )


def forget_raw_samples(influxdb: InfluxDB, age: str) -> list[str]:
    """Deletes what is older and no phase or run; the measurements that lost something. Raises
    LabError."""
    if require_age(age) == "0":
        return []
    past = f"time < now() - {age}"
    names = [str(row["name"]) for row in influxdb.query("SHOW MEASUREMENTS")]
    raw = [_quoted(name) for name in names if name not in _STAYS]
    old = [name for name in raw if influxdb.query(f"SELECT * FROM {name} WHERE {past} LIMIT 1")]
    if old:
        with working(f"deleting raw samples older than {age}"):
            for name in old:
                influxdb.query(f"DELETE FROM {name} WHERE {past}", _DELETE_SECONDS)
    return old


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
