"""InfluxDB 1.x over its HTTP API (`/ping`, `/query`, `/write`)."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import httpx

from spikelab.errors import LabError
from spikelab.http_client import client
from spikelab.stack_settings import DATABASE

_TIMEOUT_SECONDS = 10

Value = str | bool | int | float


def line(
    measurement: str, tags: Mapping[str, str], fields: Mapping[str, Value | None], time_ms: int
) -> str:
    r"""A point in line protocol. What has no value is left out.

    >>> line("runs", {"testid": "t", "plan": "p"}, {"good": 3, "why": 'a "b"', "rate": None}, 7)
    'runs,plan=p,testid=t good=3i,why="a \\"b\\"" 7'
    >>> line("run_steps", {"step": "a, b\nc"}, {"good": 3}, 7)
    'run_steps,step=a\\,\\ b\\ c good=3i 7'
    """
    written = ",".join(f"{k}={_field(v)}" for k, v in fields.items() if v is not None)
    named = {k: _tag(v) for k, v in sorted(tags.items())}
    series = ",".join([measurement, *(f"{k}={v}" for k, v in named.items() if v)])
    return f"{series} {written} {time_ms}"


def _tag(value: str) -> str:
    """A backslash at its end would escape what comes after it."""
    return re.sub("([,= ])", r"\\\1", " ".join(value.splitlines()).rstrip("\\"))


def _field(value: Value) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return f"{value}i"
        case float():
            return repr(value)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'


class InfluxDB:
    """An InfluxDB by its URL; the database is the lab's."""

    def __init__(self, url: str) -> None:
        self.url = url

    def create_database(self) -> None:
        """Makes the database; an existing one is left as it is."""
        self._post("query", params={"q": f'CREATE DATABASE "{DATABASE}"'})

    def query(self, statement: str, seconds: float = _TIMEOUT_SECONDS) -> list[dict[str, Any]]:
        """Rows of one InfluxQL statement as dictionaries, times in epoch milliseconds."""
        parameters = {"db": DATABASE, "q": statement, "epoch": "ms"}
        body = self._post("query", seconds, params=parameters).json()
        result = body["results"][0]
        if "error" in result:
            raise LabError(f"InfluxDB refused a query: {result['error']}")
        return [
            {**series.get("tags", {}), **dict(zip(series["columns"], row, strict=True))}
            for series in result.get("series", [])
            for row in series["values"]
        ]

    def write(self, lines: str) -> None:
        """Writes points in line protocol with millisecond timestamps."""
        self._post("write", params={"db": DATABASE, "precision": "ms"}, content=lines.encode())

    def _post(
        self, path: str, seconds: float = _TIMEOUT_SECONDS, **arguments: Any
    ) -> httpx.Response:
        try:
            response = client.post(f"{self.url}/{path}", timeout=seconds, **arguments)
            response.raise_for_status()
        except httpx.HTTPStatusError as error:
            raise LabError(
                f"InfluxDB at {self.url} refused /{path}: {_reason(error.response)}"
            ) from error
        except httpx.HTTPError as error:
            raise LabError(
                f"InfluxDB at {self.url} does not answer /{path} ({error}): ./lab status"
            ) from error
        return response


def _reason(response: httpx.Response) -> str:
    said = response.text.strip()
    with suppress(ValueError, KeyError, TypeError):
        said = str(response.json()["error"])
    # It takes no new series until it is started again, whatever room there is by then.
    cure = ": make room, then see docs/reliability.md" if "no space left" in said else ""
    return f"{said or response.status_code}{cure}"
