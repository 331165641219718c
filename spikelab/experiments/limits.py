"""Limits on what the target uses: ``cpu < 80%``, ``memory < 500MB``. Parsed once, judged here."""

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spikelab.record import Resources
from spikelab.units import parse_fraction

_COMPARE: dict[str, Callable[[float, float], bool]] = {"<": operator.lt, "<=": operator.le}
# What may be limited: the field of a step's resources, and what the limit is written in.
_RESOURCES = {
    "cpu": ("cpu_share", "share"),
    "memory": ("memory_bytes", "bytes"),
    "open_files": ("open_files", "count"),
    "worker_threads": ("worker_threads_share", "share"),
}
_BYTES = {"kB": 1000, "MB": 1000**2, "GB": 1000**3, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_FORM = re.compile(r"(?P<resource>\w+)\s*(?P<compare><=?)\s*(?P<limit>[0-9][0-9.]*\s*[A-Za-z%]*)")
_EXAMPLES = {"share": "80%", "bytes": "500MB", "count": "5000"}


@dataclass(frozen=True)
class Limit:
    """One limit. `field`: of `Resources`; `limit` in its unit: a share, bytes or a count."""

    text: str
    field: str
    compare: str
    limit: float

    def holds(self, used: Resources) -> bool | None:
        """Whether it is kept; None where the lab did not see how much was used."""
        value: float | None = getattr(used, self.field)
        return None if value is None else _COMPARE[self.compare](value, self.limit)


def parse_limit(text: str) -> Limit:
    """A limit from its text. Raises ValueError that shows the form."""
    match = _FORM.fullmatch(text.strip())
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


def first_unseen(limits: Sequence[Limit], used: Resources) -> Limit | None:
    return next((limit for limit in limits if limit.holds(used) is None), None)


def _bytes(text: str) -> float:
    number = text.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
    return float(number) * _BYTES[text.removeprefix(number)]


_PARSE: dict[str, Callable[[str], float]] = {
    "share": parse_fraction,
    "bytes": _bytes,
    "count": lambda text: float(int(text)),
}
