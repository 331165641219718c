"""Phases of a run in InfluxDB's `events`, where dashboards find them.

The driver writes them while they happen; the lab writes them once more when the run has ended, so
that none is missing or left open. What InfluxDB does not take is kept beside the run's record and
written by the next command that finds it up.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any, Literal

from pydantic import ValidationError

from spikelab import paths
from spikelab.console import warn
from spikelab.errors import LabError
from spikelab.files import write_whole
from spikelab.record import RunRecord
from spikelab.stores.influxdb import InfluxDB, Value, line
from spikelab.units import parse_duration

_KEPT = ".lp"
# Beside the record of an aborted run whose phases could not be looked up: they are still open.
_OPEN = "events.open"
State = Literal["open", "closed", "aborted"]


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
    state: State

    def line(self) -> str:
        """InfluxDB's line protocol, times in milliseconds."""
        fields: dict[str, Value] = {
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
