"""When a user's next request is due."""

import random


class Pace:
    """Starts a period apart, like Locust's constant_throughput, but the first start is somewhere
    in `spread`: users that begin together do not fire together. A start that is late moves the
    later ones; nothing is caught up."""

    def __init__(self) -> None:
        self._due: float | None = None

    def wait(self, now: float, period: float, spread: float) -> float:
        """Seconds from `now` to the next start; all on one clock, in seconds."""
        if self._due is None:
            self._due = now + random.random() * spread
        else:
            self._due = max(self._due + period, now)
        return self._due - now
