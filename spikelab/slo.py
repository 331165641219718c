"""Service-level objectives: ``success >= 99.9%``, ``p95 < 1s``. Parsed once, judged here."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from spikelab.units import parse_duration, parse_fraction

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_QUANTILES = {"p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "p99.9": "p99_9"}
# The same as in k6/lib/slo.js; a test feeds both with one table.
_FORM = re.compile(
    r"(?:(?P<success>success)\s*(?P<above>>=?)\s*(?P<share>[0-9]+(?:\.[0-9]+)?\s*%?)"
    r"|(?P<quantile>p50|p90|p95|p99|p99\.9)\s*(?P<below><=?)\s*(?P<limit>[0-9]+(?:\.[0-9]+)?(?:ms|s|m)))"
)


@dataclass(frozen=True)
class Objective:
    """One objective: ``key`` is ``success`` (share of requests) or a latency key (seconds)."""

    text: str
    key: str
    compare: str
    limit: float

    def holds(self, success: float, latency_seconds: Mapping[str, float | None]) -> bool:
        """Whether it is met. Latency counts failures as infinite (None): a miss, not a gap."""
        if self.key == "success":
            return _COMPARE[self.compare](success, self.limit)
        value = latency_seconds[self.key]
        return _COMPARE[self.compare](float("inf") if value is None else value, self.limit)


def objective_text(text: str) -> str:
    """The text itself, where it is an objective. Raises ValueError that shows the form."""
    parse_objective(text)
    return text


def parse_objective(text: str) -> Objective:
    """An objective from its text. Raises ValueError that shows the form."""
    match = _FORM.fullmatch(text)
    if not match:
        raise ValueError(
            f"'{text}' is no objective: write it like 'success >= 99.9%' or 'p95 < 1s'"
        )
    if match["success"]:
        return Objective(text, "success", match["above"], parse_fraction(match["share"]))
    key = _QUANTILES[match["quantile"]]
    return Objective(text, key, match["below"], parse_duration(match["limit"]))
