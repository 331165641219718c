"""The signals of the lab, each declared once: name, unit, meaning, colour and its queries.

Dashboards and reports draw signals and never write a query themselves. A query is written as
Grafana reads it: `$testid`, `$driver`, `$phase`, `$name` and `$target` are the dashboard's
variables, `$__interval` is the length of one point on the panel, `$__interval_ms` the same in
milliseconds and `$__rate_interval` a window long enough for `rate()`. `$__range` is the whole time
shown. `$testid` is a regular expression: "live" is `.*`, whatever is in the time shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from spikelab import paths


class Source(StrEnum):
    """A store, by the uid of its data source in Grafana."""

    PROMETHEUS = "prometheus"
    INFLUXDB = "influxdb"


class Colour(StrEnum):
    """What a colour means, on every dashboard; each is readable on dark and on light."""

    GOOD = "green"
    FAILED = "red"
    TURNED_AWAY = "orange"
    WORKING = "blue"
    WAITING = "semi-dark-yellow"
    CONNECTED = "#1FA8A0"
    LIMIT = "#8E8E8E"
    PREDICTED = "#E54D9E"
    P50 = "super-light-purple"
    P90 = "light-purple"
    P95 = "purple"
    P99 = "semi-dark-purple"
    P99_9 = "dark-purple"
    SERVER = "#1FA8A0"
    DIAL_TIMEOUT = "orange"
    REQUEST_TIMEOUT = "red"
    RESET = "dark-orange"
    REFUSED = "dark-red"
    HTTP_4XX = "semi-dark-yellow"
    HTTP_5XX = "super-light-red"
    OTHER = "#8E8E8E"
    INCONCLUSIVE = "semi-dark-yellow"
    # Runs over each other, in the order in which they were chosen.
    RUN_1 = "blue"
    RUN_2 = "orange"
    RUN_3 = "#E54D9E"
    RUN_4 = "#1FA8A0"


class Unit(StrEnum):
    """Units as Grafana names them."""

    COUNT = "short"
    EXACT_COUNT = "none"
    SECONDS = "s"
    MILLISECONDS = "ms"
    REQUESTS_PER_SECOND = "reqps"
    COUNT_PER_SECOND = "cps"
    SHARE = "percentunit"
    BYTES = "bytes"
    BYTES_PER_SECOND = "Bps"


@dataclass(frozen=True)
class Signal:
    """One measured quantity.

    `title` is its legend and may hold labels as `{{label}}`; `every` is how often it is measured,
    the shortest step that makes sense; a `limit` is drawn as a dashed line, not as a measurement.
    A signal of several series may give each a colour of its own, by its legend (`colours`).
    """

    name: str
    title: str
    unit: Unit
    about: str
    colour: Colour
    expressions: Mapping[Source, str]
    every: str = "1s"
    limit: bool = False
    colours: Mapping[str, Colour] = field(default_factory=dict)


RUN = 'testid=~"$testid", driver=~"$driver"'
PHASE = RUN + ', phase=~"$phase"'
REQUEST = PHASE + ', name=~"$name"'
TARGET = 'target=~"$target"'
# The lab's own, by the label of all its scrapes (prometheus/targets): a service of the user's, with
# an exporter beside it, has another. Replicas have the same.
LAB_TARGET = paths.TARGET.name
OF_LAB_TARGET = f'target="{LAB_TARGET}"'


def peak(series: str) -> str:
    """The highest value of a gauge within each point: a short queue is not missed."""
    return f"sum by (target) (max_over_time({series}{{{TARGET}}}[$__interval]))"


def increase_per_second(series: str, selector: str = "") -> str:
    """How fast a counter of the target grows."""
    return f"sum by (target) (rate({series}{{{TARGET}{selector}}}[$__rate_interval]))"
