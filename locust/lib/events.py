"""Phases of the run as points of InfluxDB's `events`, which dashboards draw as regions.

They are a courtesy: nothing here raises, and a store that is down costs a second of waiting in
nobody's way. What could not be written is kept and written when the store is back.
"""

import urllib.error
import urllib.request
from dataclasses import dataclass, replace
from urllib.parse import quote

TIMEOUT_SECONDS = 1.0
# How far ahead the end of a region is put when nobody knows it, as in a run without a time limit.
UNPLANNED_MS = 5000


@dataclass(frozen=True)
class Region:
    """A phase in time, milliseconds since 1970. `planned_ms` is None where no end is known."""

    testid: str
    phase: str
    kind: str
    text: str
    started_ms: int
    planned_ms: int | None
    ended_ms: int | None = None

    def state(self) -> str:
        """`aborted` if it ended more than a second before its planned end."""
        if self.ended_ms is None:
            return "open"
        early = self.planned_ms is not None and self.ended_ms < self.planned_ms - 1000
        return "aborted" if early else "closed"


def _tag(value: str) -> str:
    for character in ",= ":
        value = value.replace(character, "\\" + character)
    return value


def _field(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def line(region: Region, now_ms: int) -> str:
    """InfluxDB's line protocol. The same tags and time written again overwrite the point."""
    end_ms = region.ended_ms or region.planned_ms or now_ms + UNPLANNED_MS
    tags = f"testid={_tag(region.testid)},driver=locust,phase={_tag(region.phase)}"
    fields = {
        "title": region.phase,
        "text": region.text,
        "tags": f"locust,{region.kind}",
        "state": region.state(),
    }
    written = ",".join(f"{key}={_field(value)}" for key, value in fields.items())
    return f"events,{tags} {written},timeEnd={end_ms}i {region.started_ms}"


class Regions:
    """Phases, as they begin and end, and what of them is still to be written."""

    def __init__(self, url: str, database: str) -> None:
        self._write_url = f"{url}/write?db={quote(database)}&precision=ms" if url else ""
        self._open: Region | None = None
        self._pending: dict[tuple[str, int], Region] = {}
        self.problem: str | None = None

    def begin(self, region: Region) -> None:
        """A phase begins; one that is open ends."""
        self.end(region.started_ms)
        self._open = region
        self._keep(region)

    def end(self, now_ms: int) -> None:
        """The open phase ends, if there is one."""
        if self._open:
            self._keep(replace(self._open, ended_ms=now_ms))
            self._open = None

    def _keep(self, region: Region) -> None:
        if self._write_url:
            self._pending[region.testid, region.started_ms] = region

    @property
    def pending(self) -> int:
        return len(self._pending)

    def write(self, now_ms: int) -> bool:
        """Writes what is to be written; False, with `problem` set, if the store did not take it."""
        if self._open and self._open.planned_ms is None:
            self._keep(self._open)  # a region without a planned end grows while it is open
        sent = dict(self._pending)
        if sent:
            text = "\n".join(line(each, now_ms) for each in sent.values())
            self.problem = post(self._write_url, text)
        if self.problem is None:
            # What changed meanwhile stays.
            self._pending = {k: v for k, v in self._pending.items() if sent.get(k) is not v}
        return self.problem is None


# Without proxies: the store is on this machine or in this network.
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


def post(url: str, text: str) -> str | None:
    """Posts lines; None when they were stored, else what went wrong."""
    try:
        with _open(url, text.encode(), timeout=TIMEOUT_SECONDS) as response:
            response.read()
    except (OSError, ValueError) as error:  # urllib's errors are OSErrors
        return f"{url}: {error}"
    return None
