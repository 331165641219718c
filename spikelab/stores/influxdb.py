"""InfluxDB 1.x over its HTTP API (`/ping`, `/query`, `/write`)."""

from typing import Any

import httpx

from spikelab.errors import LabError
from spikelab.http_client import client
from spikelab.stack_settings import DATABASE

_TIMEOUT_SECONDS = 10


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
        except httpx.HTTPError as error:
            raise LabError(
                f"InfluxDB at {self.url} does not answer /{path} ({error}): ./lab status"
            ) from error
        return response
