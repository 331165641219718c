"""The formats that `./lab import` takes."""

from spikelab.importers import fortio, k6, locust, vegeta
from spikelab.importers.common import Format

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
