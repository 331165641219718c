"""Queries against Prometheus, of one moment or of many."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import httpx

from spikelab.errors import LabError
from spikelab.http_client import client

_TIMEOUT_SECONDS = 10


class Prometheus:
    """A Prometheus by its URL."""

    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, expression: str, at: datetime | None = None) -> dict[str, float]:
        """Values by the series' labels written as ``k=v,…`` (sorted, without the name).

        Raises LabError when Prometheus does not answer or refuses the expression.
        """
        parameters = {"query": expression}
        if at is not None:
            parameters["time"] = f"{at.timestamp():.3f}"
        return {
            _labels(series["metric"]): float(series["value"][1])
            for series in self._ask("query", parameters)
            if "value" in series
        }

    def value(self, expression: str, at: datetime | None = None) -> float | None:
        """The value of an expression that yields at most one series; None without one."""
        return next(iter(self.query(expression, at).values()), None)

    def values(
        self, expression: str, first_seconds: int, last_seconds: int, step_seconds: int
    ) -> dict[int, float]:
        """Values of an expression that yields at most one series, by epoch seconds."""
        parameters = {
            "query": expression,
            "start": str(first_seconds),
            "end": str(last_seconds),
            "step": str(step_seconds),
        }
        found = self._ask("query_range", parameters)
        values = found[0].get("values", []) if found else []
        return {int(seconds): float(value) for seconds, value in values}

    def evaluated(self, rule: str) -> datetime | None:
        """When the last evaluation that is complete of a rule's group began; None without one."""
        groups = self._answer(f"rules?type=record&rule_name[]={rule}")["groups"]
        return datetime.fromisoformat(groups[0]["lastEvaluation"]) if groups else None

    def age_seconds(self) -> float:
        """Since its start, by its own clock. Raises LabError."""
        said = self._answer("status/runtimeinfo")
        began, now = (datetime.fromisoformat(said[name]) for name in ("startTime", "serverTime"))
        return (now - began).total_seconds()

    def _ask(self, kind: str, parameters: Mapping[str, str]) -> list[dict[str, Any]]:
        result: list[dict[str, Any]] = self._answer(kind, parameters)["result"]
        return result

    def _answer(self, kind: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        try:
            answer = client.request(
                "POST" if query else "GET",
                f"{self.url}/api/v1/{kind}",
                data=query,
                timeout=_TIMEOUT_SECONDS,
            ).json()
        except (httpx.HTTPError, ValueError) as error:
            raise LabError(
                f"Prometheus at {self.url} does not answer ({type(error).__name__}): ./lab status"
            ) from error
        if answer["status"] != "success":
            asked = query["query"] if query else kind
            raise LabError(f"Prometheus refused a query: {answer['error']}: {asked}")
        data: dict[str, Any] = answer["data"]
        return data


def _labels(metric: dict[str, str]) -> str:
    return ",".join(f"{k}={v}" for k, v in sorted(metric.items()) if k != "__name__")
