"""What the target went through in a run, from Prometheus, over the run's own time range."""

import math
import time
from contextlib import suppress
from datetime import datetime, timedelta

from spikelab.errors import LabError
from spikelab.record import Connections, QueueWait, now
from spikelab.signals.core import OF_LAB_TARGET
from spikelab.stores.prometheus import Prometheus
from spikelab.target_view import Capacity

# The target is scraped every 2 s: this long after the end, the last scrape is in for certain.
SETTLE_SECONDS = 3.0
_POLL_SECONDS = 0.1
# Of the rules that make the normalised series: they are evaluated together, every second.
_RULE = "loadtest:requests:rate"
# The sockets are scraped every second; with fewer of them a peak may have gone unseen.
_ENOUGH_SCRAPES = 0.7


def settle(prometheus: Prometheus, ended: datetime) -> None:
    """Waits until what shows the end of the run is stored: a scrape of the target and one of its
    sockets, and the normalised series of what the driver pushed."""
    while (left := SETTLE_SECONDS - (now() - ended).total_seconds()) > 0:
        # One that does not answer may be starting again.
        with suppress(LabError):
            if _stored(prometheus, ended):
                return
        time.sleep(min(_POLL_SECONDS, left))


def _stored(prometheus: Prometheus, ended: datetime) -> bool:
    if not scraped_since(prometheus, ended):
        return False
    evaluated = prometheus.evaluated(_RULE)
    return evaluated is not None and evaluated >= ended


def scraped_since(prometheus: Prometheus, ended: datetime, at: datetime | None = None) -> bool:
    """Whether the lab's own target and its sockets were, from that moment on; as it is known `at`
    a moment, None: now."""
    # A scrape is stored whole, under the time at which it began. Of those that answer: a replica
    # that is not there is waited for until the scrape times out.
    up = f'up{{job=~"target|sockets", {OF_LAB_TARGET}}}'
    scraped = prometheus.query(f"min by (job) (timestamp({up}) and {up} == 1)", at)
    return len(scraped) == 2 and min(scraped.values()) >= ended.timestamp()


def connections(
    prometheus: Prometheus,
    started: datetime,
    ended: datetime,
    capacity: Capacity | None,
    overflows: int | None,
    keep_alive: bool,
) -> Connections:
    """Prediction from settings and limit, measurement from the sockets alone."""
    window = _window(started, ended)
    established = f"sockets_established{{{OF_LAB_TARGET}}}"
    seen = prometheus.value(f"max(count_over_time({established}[{window}s]))", ended) or 0
    if seen < _ENOUGH_SCRAPES * (ended - started).total_seconds():
        raise LabError(f"Prometheus has only {seen:.0f} scrapes of this run's {window} seconds")
    return Connections(
        predicted=capacity.predicted if capacity else None,
        established_peak=_peak(prometheus, "sockets_established", window, ended),
        accept_queue_peak=_peak(prometheus, "sockets_accept_queue_depth", window, ended),
        accept_queue_limit=capacity.accept_queue_limit if capacity else None,
        listen_overflows=overflows,
        policy="keep-alive" if keep_alive else "close",
    )


def queue_wait(
    prometheus: Prometheus, started: datetime, ended: datetime, born: float | None
) -> QueueWait:
    """Waits in the worker queue; from a native histogram, so within its bucket's width (2.2 %).

    `born`: when the target's process started, in epoch seconds.
    """
    until = ended + timedelta(seconds=SETTLE_SECONDS)
    waits = _gained("tomcat_worker_queue_wait_seconds", started, until, born)
    quantiles = {
        name: prometheus.value(f"histogram_quantile({q}, {waits})", now())
        for name, q in (("p50", 0.5), ("p99", 0.99), ("max", 1))
    }
    return QueueWait(
        **{k: None if v is None or math.isnan(v) else round(v, 6) for k, v in quantiles.items()}
    )


def server_mean(
    prometheus: Prometheus, path: str, started: datetime, until: datetime, born: float | None
) -> float | None:
    """Seconds a request by the target's own timer; scrapes are 2 s apart, so are its limits.

    `path` as that timer names it; None where it counted nothing there.
    """
    seconds, there = "http_server_requests_seconds", f'uri="{path}"'
    total = prometheus.value(_gained(f"{seconds}_sum", started, until, born, there))
    count = prometheus.value(_gained(f"{seconds}_count", started, until, born, there))
    return round(total / count, 9) if total is not None and count else None


def _gained(
    series: str, started: datetime, until: datetime, born: float | None, selector: str = ""
) -> str:
    """What a counter or histogram of the target gained in that time.

    What this process counted before is not in it; a process before it counted something else.
    """
    series = f"{series}{{{OF_LAB_TARGET}, {selector}}}"
    after = f"sum(last_over_time({series}[1m] @ {until.timestamp():.3f}))"
    age_ms = int((started.timestamp() - (born or 0)) * 1000)
    if age_ms <= 0:
        return after
    window = f"{min(age_ms, 60_000)}ms"
    before = f"sum(last_over_time({series}[{window}] @ {started.timestamp():.3f}))"
    return f"(({after} - {before}) or {after})"


def _window(started: datetime, ended: datetime) -> int:
    return math.ceil((ended - started).total_seconds()) + 2


def _peak(prometheus: Prometheus, series: str, window: int, ended: datetime) -> int | None:
    # Of all replicas together. Twice as often as it is scraped: no scrape lies between two steps.
    together = f"sum({series}{{{OF_LAB_TARGET}}})"
    value = prometheus.value(f"max_over_time({together}[{window}s:500ms])", ended)
    return None if value is None else int(value)
