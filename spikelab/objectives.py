"""What a step is judged by: objectives (``success >= 99.9%``, ``p95 < 1s``) and limits on what the
target uses (``cpu < 80%``, ``memory < 500MB``). Their grammar, and whether a figure meets them.

The drivers read objectives as well (k6/lib/slo.js, locust/lib/slo.py): tests/data/objectives.json
holds all three to one grammar.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_letters
from typing import Annotated, Literal

from pydantic import AfterValidator

from spikelab.units import parse_duration, parse_fraction

Verdict = Literal["pass", "fail", "inconclusive"]

# The percentiles that a step's latency has, as shares.
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999, "max": 1.0}


def reached_by(good: int, requests: int) -> set[str]:
    """The percentiles of all requests that so many good answers reach; failures are above them."""
    # Rounded: a share of a count is rarely a number that binary has exactly.
    return {
        key
        for key, quantile in QUANTILES.items()
        if math.ceil(round(quantile * requests, 6)) <= good
    }


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


@dataclass(frozen=True)
class _Bound:
    """`limit` is in the unit of what `key` names."""

    text: str
    key: str
    compare: str
    limit: float

    def _admits(self, value: float) -> bool:
        return _COMPARE[self.compare](value, self.limit)


class Objective(_Bound):
    """`key` is ``success`` (a share of the requests) or one of `Latency` (seconds)."""

    @property
    def allowed_share(self) -> float:
        """The share of requests that may miss it.

        ``success >= 99.9%``: 0.001 may fail. ``p95 < 1s``: 0.05 may take a second or longer,
        failures and drops among them.
        """
        met = self.limit if self.key == "success" else QUANTILES[self.key]
        # Rounded, for 1 - 0.999 is a little more than 0.001.
        return round(1 - met, 12)

    @property
    def below(self) -> bool:
        """Whether fewer must miss it than that share: ``success > 99%``."""
        return self.compare == ">"

    def holds(self, success: float, latency_seconds: Mapping[str, float | None]) -> bool:
        """Whether it is met. Latency counts failures as infinite (None): a miss, not a gap."""
        if self.key == "success":
            return self._admits(success)
        seconds = latency_seconds[self.key]
        return self._admits(float("inf") if seconds is None else seconds)


_OBJECTIVE = re.compile(
    r"(?P<success>success)\s*(?P<above>>=?)\s*(?P<share>[0-9]+(?:\.[0-9]+)?\s*%?)"
    r"|(?P<percentile>p50|p90|p95|p99|p99\.9)\s*(?P<below><=?)"
    r"\s*(?P<seconds>[0-9]+(?:\.[0-9]+)?(?:ms|s|m))"
)


def parse_objective(text: str) -> Objective:
    """An objective from its text. Raises ValueError that shows the form."""
    match = _OBJECTIVE.fullmatch(text)
    if not match:
        raise ValueError(
            f"'{text}' is no objective: write it like 'success >= 99.9%' or 'p95 < 1s'"
        )
    if match["success"]:
        return Objective(text, "success", match["above"], parse_fraction(match["share"]))
    key = match["percentile"].replace(".", "_")
    return Objective(text, key, match["below"], parse_duration(match["seconds"]))


class Limit(_Bound):
    """`key` is one of a step's `Resources`: a share, bytes or a count."""

    def holds(self, used: float | None) -> bool | None:
        """Whether it is kept; None where the lab did not see how much was used."""
        return None if used is None else self._admits(used)


_BYTES = {"kB": 1000, "MB": 1000**2, "GB": 1000**3, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def _parse_bytes(text: str) -> float:
    number = text.rstrip(ascii_letters)
    return float(number) * _BYTES[text.removeprefix(number)]


# What may be limited: its name in `Resources`, how a value is read, and an example of one.
_LIMITED: dict[str, tuple[str, Callable[[str], float], str]] = {
    "cpu": ("cpu_share", parse_fraction, "80%"),
    "memory": ("memory_bytes", _parse_bytes, "500MB"),
    "open_files": ("open_files", int, "5000"),
    "worker_threads": ("worker_threads_share", parse_fraction, "80%"),
}
_LIMIT = re.compile(r"(?P<name>\w+)\s*(?P<compare><=?)\s*(?P<value>[0-9][0-9.]*\s*[A-Za-z%]*)")


def parse_limit(text: str) -> Limit:
    """A limit from its text. Raises ValueError that shows the form."""
    match = _LIMIT.fullmatch(text.strip())
    if not match or match["name"] not in _LIMITED:
        raise ValueError(
            f"'{text}' is no limit: write it like 'cpu < 80%', 'memory < 500MB', "
            "'open_files < 5000' or 'worker_threads < 90%'"
        )
    key, parse, example = _LIMITED[match["name"]]
    try:
        return Limit(text, key, match["compare"], parse(match["value"]))
    except (ValueError, KeyError) as error:
        form = f"{match['name']} {match['compare']} {example}"
        raise ValueError(f"'{text}' is no limit: write it like '{form}'") from error


# Texts that are one, for what is read from files.
ObjectiveText = Annotated[str, AfterValidator(lambda text: parse_objective(text).text)]
LimitText = Annotated[str, AfterValidator(lambda text: parse_limit(text).text)]
