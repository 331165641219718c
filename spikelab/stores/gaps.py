"""When Prometheus recorded nothing: it was down, or could not write."""

import math
import time
from collections.abc import Iterable
from contextlib import suppress

from spikelab.errors import LabError
from spikelab.stores.prometheus import Prometheus

# Scraped every second in every runtime, also while there is no target.
_BEAT = 'max(timestamp(up{job="sockets"}))'
# Two beats may be late on a machine at work; a store that is started again takes longer.
_MISSED_SECONDS = 2.5
# Prometheus takes up its targets 5 s after its own start, and scrapes each of them a moment later.
_FIRST_BEAT_SECONDS = 10.0
_POLL_SECONDS = 0.1

Gap = tuple[float, float]


def await_beat(prometheus: Prometheus) -> None:
    """Waits until Prometheus records: one that has just been started would miss the beginning of a
    run. Where nothing comes for 10 s the run begins without: what it lacks is a gap, and said."""
    deadline = time.monotonic() + _FIRST_BEAT_SECONDS
    while time.monotonic() < deadline:
        with suppress(LabError):
            age = prometheus.age_seconds()
            # From before a restart there are beats as well.
            last_beat = prometheus.value(f"time() - {_BEAT}")
            if age > _FIRST_BEAT_SECONDS or (last_beat is not None and last_beat < age):
                return
        time.sleep(_POLL_SECONDS)


def gaps(prometheus: Prometheus, first_seconds: float, last_seconds: float) -> list[Gap]:
    """From the last record before each gap to the first one after it, in epoch seconds.

    Asked within five minutes after the time in question. Raises LabError.
    """
    first, last = math.floor(first_seconds), math.ceil(last_seconds)
    return between(prometheus.values(_BEAT, first, last, 1).values(), first, last)


def between(beats: Iterable[float], first: int, last: int) -> list[Gap]:
    """Where the beats are too far apart, or from an end of the time in question.

    >>> between([99.4, 100.4, 104.4, 105.4], 100, 106)
    [(100.4, 104.4)]
    """
    starts = sorted({first, *(beat for beat in beats if beat > first)})
    # The beat of the last second may be a second old.
    ends = [*starts[1:], max(last - 1, starts[-1])]
    return [
        (start, end)
        for start, end in zip(starts, ends, strict=True)
        if end - start > _MISSED_SECONDS
    ]


def inside(moment: float, step_seconds: float, found: list[Gap]) -> bool:
    """Whether nothing was recorded in the step that ends at that moment."""
    return any(begin <= moment - step_seconds and moment < end for begin, end in found)
