"""Where the time of a request goes, from the moment it was due to its last byte.

Each moment that lib/client.py notes ends the part before it: the parts add up.
"""

import time
from contextvars import ContextVar

PARTS = (
    "lateness",  # of the driver; of a rate also of the user that waited for its previous answer
    "waiting_for_connection",  # with looking up the name
    "connecting",
    "tls",
    "sending",  # with making the request
    "waiting",
    "receiving",
)
LATENESS, WAITING_FOR_CONNECTION, CONNECTING, TLS, SENDING, WAITING, RECEIVING = range(7)


class Timing:
    """One request's time so far, in seconds of time.perf_counter."""

    __slots__ = ("due", "parts", "until")

    def __init__(self, due: float) -> None:
        self.due = self.until = due
        self.parts = [0.0] * len(PARTS)

    @property
    def seconds(self) -> float:
        """From the moment it was due to the last one noted: the sum of the parts."""
        return self.until - self.due

    def end(self, part: int) -> None:
        """What went on since the last moment noted was this part."""
        now = time.perf_counter()
        self.parts[part] += now - self.until
        self.until = now

    def begin(self) -> None:
        """The request goes to the client, in this greenlet."""
        self.end(LATENESS)
        CURRENT.set(self)


# Of the greenlet's request; None for one that nobody times.
CURRENT: ContextVar[Timing | None] = ContextVar("timing", default=None)
