"""How late this process is, by a clock of its own: beside the requests, whatever these do."""

import time
from collections.abc import Callable

from lib import alarm

STEP_SECONDS = 0.01


def watch(note: Callable[[float, float], None]) -> None:
    """Wakes up every 10 ms for ever, and notes when it was to wake up and how late it was, both in
    seconds of time.perf_counter. A process that stands still for a second was to wake up a hundred
    times in it, and is late by 1 s, 0.99 s, 0.98 s …: as requests that come evenly would be."""
    due = time.perf_counter()
    while True:
        due += STEP_SECONDS
        alarm.sleep(due)
        now = time.perf_counter()
        note(due, max(0.0, now - due))
        while due + STEP_SECONDS <= now:
            due += STEP_SECONDS
            note(due, now - due)
