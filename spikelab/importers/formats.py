"""The formats that `./lab import` takes."""

from collections.abc import Callable
from dataclasses import dataclass

from spikelab.importers import fortio, k6, locust, vegeta
from spikelab.importers.report import Report


@dataclass(frozen=True)
class Format:
    """`endings`: how its files' names end, the best first where one run has several.
    `companions`: files that the tool writes beside them and that hold nothing more to import."""

    name: str
    parse: Callable[[str], Report]
    endings: tuple[str, ...]
    companions: tuple[str, ...] = ()


FORMATS = {
    each.name: each
    for each in (
        # The text is rounded, the JSON is not.
        Format("vegeta", vegeta.parse, (".json", ".txt")),
        Format("k6", k6.parse, (".json",)),
        Format("locust", locust.parse, ("_stats.csv",), locust.COMPANIONS),
        Format("fortio", fortio.parse, (".json",)),
    )
}
