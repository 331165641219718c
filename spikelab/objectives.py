"""Service-level objectives: ``success >= 99.9%``, ``p95 < 1s``. Parsed once, judged here."""

# - Limits on what the target uses: ``cpu < 80%``, ``memory < 500MB``. Parsed once, judged here.
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from spikelab.units import parse_duration, parse_fraction

# What the percentiles of `Latency` are.
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999, "max": 1.0}
Verdict = Literal["pass", "fail", "inconclusive"]


def over_repeats(verdicts: Sequence[Verdict], needed: int) -> Verdict:
    """Pass or fail when at least `needed` runs say so and none says the opposite.

    The run is the unit of replication: requests of several runs are never counted together, for
    that hides runs that disagree. An inconclusive run decides nothing either way.
    """
    passed, failed = verdicts.count("pass"), verdicts.count("fail")
    if passed >= needed and not failed:
        return "pass"
    return "fail" if failed >= needed and not passed else "inconclusive"


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

    @property
    def allowed_share(self) -> float:
        """The share of requests that may miss it.

        ``success >= 99.9%``: 0.001 may fail. ``p95 < 1s``: 0.05 may take a second or longer,
        failures and drops among them.
        """
        met = self.limit if self.key == "success" else QUANTILES[self.key]
        # Rounded, for 1 - 0.999 is a little more than 0.001.
        return round(1 - met, 12)

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


_LIMITS_COMPARE: dict[str, Callable[[float, float], bool]] = {"<": operator.lt, "<=": operator.le}
# What may be limited: the field of a step's resources, and what the limit is written in.
_RESOURCES = {
    "cpu": ("cpu_share", "share"),
    "memory": ("memory_bytes", "bytes"),
    "open_files": ("open_files", "count"),
    "worker_threads": ("worker_threads_share", "share"),
}
_BYTES = {"kB": 1000, "MB": 1000**2, "GB": 1000**3, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_LIMITS_FORM = re.compile(
    r"(?P<resource>\w+)\s*(?P<compare><=?)\s*(?P<limit>[0-9][0-9.]*\s*[A-Za-z%]*)"
)
_EXAMPLES = {"share": "80%", "bytes": "500MB", "count": "5000"}


@dataclass(frozen=True)
class Limit:
    """One limit. `field`: of `Resources`; `limit` in its unit: a share, bytes or a count."""

    text: str
    field: str
    compare: str
    limit: float

    def holds(self, used: float | None) -> bool | None:
        """Whether it is kept; None where the lab did not see how much was used."""
        return None if used is None else _LIMITS_COMPARE[self.compare](used, self.limit)


def parse_limit(text: str) -> Limit:
    """A limit from its text. Raises ValueError that shows the form."""
    match = _LIMITS_FORM.fullmatch(text.strip())
    if not match or match["resource"] not in _RESOURCES:
        raise ValueError(
            f"'{text}' is no limit: write it like 'cpu < 80%', 'memory < 500MB', "
            "'open_files < 5000' or 'worker_threads < 90%'"
        )
    field, unit = _RESOURCES[match["resource"]]
    try:
        limit = _PARSE[unit](match["limit"])
    except (ValueError, KeyError) as error:
        form = f"{match['resource']} {match['compare']} {_EXAMPLES[unit]}"
        raise ValueError(f"'{text}' is no limit: write it like '{form}'") from error
    return Limit(text, field, match["compare"], limit)


def _bytes(text: str) -> float:
    number = text.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
    return float(number) * _BYTES[text.removeprefix(number)]


_PARSE: dict[str, Callable[[str], float]] = {
    "share": parse_fraction,
    "bytes": _bytes,
    "count": lambda text: float(int(text)),
}
