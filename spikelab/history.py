"""Finished runs in InfluxDB, where dashboards look back at them and set them side by side.

Written when a run's record is closed: `runs` (a point a run), `run_steps` (a point a step) and
`run_series` (the load and its answers by seconds since its start); docs/history.md lists them.
"""

# - Phases of a run in InfluxDB's `events`, where dashboards find them. The driver writes them
#   while they happen; the lab writes them once more when the run has ended, so that none is
#   missing or left open. What InfluxDB does not take is kept beside the run's record and
#   written by the next command that finds it up.
# - How long InfluxDB keeps raw samples. Phases and finished runs stay: only what drivers write
#   for each request grows without end. Published k6 commands write into the database's own
#   retention policy, where phases and runs are as well, so a shorter policy would take all of
#   them. Raw samples are deleted by their age instead.
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any, Literal

from pydantic import ValidationError

from spikelab import paths, series
from spikelab.console import warn, working
from spikelab.errors import LabError, UsageError
from spikelab.results.run import Latency, RunRecord, Step, Totals, write_whole
from spikelab.settings import load_target_declaration
from spikelab.signals import Unit
from spikelab.stores import FieldValue, InfluxDB, line
from spikelab.units import parse_duration

_IN_HISTORY = [signal.name for signal in series.LOAD]
_LATENCIES = {signal.name for signal in series.LOAD if signal.unit is Unit.SECONDS}

Fields = dict[str, FieldValue | None]


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
    return {**tags, "variant": record.variant}


def _curve(record: RunRecord) -> str:
    """What a run's steps are one curve with: those of its variant, else its own."""
    variant = record.variant
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


def _listed(values: Mapping[str, FieldValue]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _latencies(latency: Latency) -> Fields:
    return {f"latency_{name}_seconds": value for name, value in latency.model_dump().items()}


_KEPT = ".lp"
# Beside the record of an aborted run whose phases could not be looked up: they are still open.
_OPEN = "events.open"
EventState = Literal["open", "closed", "aborted"]


@dataclass(frozen=True)
class Event:
    """One phase. Its testid, driver, phase and start make the point that it is."""

    testid: str
    driver: str
    phase: str
    text: str
    kind: str
    begun: datetime
    ended: datetime
    state: EventState

    def line(self) -> str:
        """InfluxDB's line protocol, times in milliseconds."""
        fields: dict[str, FieldValue] = {
            "title": self.phase,
            "text": self.text,
            "tags": f"{self.driver},{self.kind}",
            "state": self.state,
            "timeEnd": _ms(self.ended),
        }
        tags = {"driver": self.driver, "phase": self.phase, "testid": self.testid}
        return line("events", tags, fields, _ms(self.begun))


def write_events(influxdb: InfluxDB, events: Iterable[Event]) -> int:
    """Writes a run's phases; returns how many were kept for later because that failed."""
    by_run: dict[str, list[str]] = {}
    for event in events:
        by_run.setdefault(event.testid, []).append(event.line())
    kept = 0
    for testid, lines in by_run.items():
        if not write_or_keep(influxdb, testid, "events", lines):
            kept += len(lines)
    return kept


def write_or_keep(influxdb: InfluxDB | None, testid: str, what: str, lines: Sequence[str]) -> bool:
    """Writes lines of a run; keeps them beside its record, as `what`, where that fails or no
    InfluxDB runs."""
    try:
        if influxdb:
            influxdb.write("\n".join(lines))
            return True
    except LabError as error:
        warn(str(error))
    path = paths.RESULTS / testid / f"{what}{_KEPT}"
    write_whole(path, "\n".join(lines) + "\n")
    return False


def write_kept(influxdb: InfluxDB) -> None:
    """Writes what earlier runs could not; what InfluxDB does not take stays kept."""
    for path in sorted(paths.RESULTS.glob(f"*/*{_KEPT}")):
        with suppress(LabError):
            influxdb.write(path.read_text(encoding="utf-8"))
            path.unlink()
    for path in sorted(paths.RESULTS.glob(f"*/{_OPEN}")):
        with suppress(ValidationError, OSError):
            record = RunRecord.model_validate_json((path.parent / "run.json").read_bytes())
            if record.ended and record.folder == path.parent:
                mark_aborted(influxdb, record, record.ended)


def mark_aborted(influxdb: InfluxDB | None, record: RunRecord, ended: datetime) -> None:
    """Gives the phases that a run's end cut off that end and the state `aborted`.

    Those that were over by then are closed. Without an answer from InfluxDB all stay as they are
    until the next command that finds it up: a run's end must not hang on it.
    """
    durations_ms = _planned_ms(record)
    still_open = record.folder / _OPEN
    with suppress(LabError, OSError):
        still_open.touch()
        if influxdb is None:
            return
        rows = influxdb.query(f"SELECT * FROM events WHERE testid = '{record.testid}'")
        lines = [_ended_line(row, _ms(ended), durations_ms) for row in rows]
        if lines:
            influxdb.write("\n".join(lines))
        still_open.unlink()


def _ended_line(row: Mapping[str, Any], ended_ms: int, durations_ms: Mapping[str, float]) -> str:
    planned_ms = row["time"] + durations_ms.get(row["phase"], inf)
    state = "aborted" if planned_ms > ended_ms else "closed"
    tags = {name: row[name] for name in ("driver", "phase", "testid")}
    return line(
        "events", tags, {"state": state, "timeEnd": min(ended_ms, row["timeEnd"])}, row["time"]
    )


def _planned_ms(record: RunRecord) -> dict[str, float]:
    """How long each phase was to last, from the plan that the driver got."""
    with suppress(OSError, ValueError, KeyError):
        plan = json.loads((record.folder / "plan.json").read_bytes())
        return {each["name"]: parse_duration(each["duration"]) * 1000 for each in plan["phases"]}
    return {}


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
