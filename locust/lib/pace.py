"""When a user's next request is due."""

import math
import random


class Pace:
    """Starts a period apart, like Locust's constant_throughput, but the first start is somewhere
    in `spread`: users that begin together do not fire together. A start that is late moves the
    later ones; nothing is caught up. All times are on one clock, in seconds."""

    def __init__(self) -> None:
        self.due = math.nan  # the request that is next, or was last
        self.start = math.nan  # of that request: when it was due, or the user was free

    def wait(self, now: float, period: float, spread: float, since: float) -> float:
        """Seconds from `now` to the next start. Nothing is due before `since`."""
        if math.isnan(self.start):
            self.due = now + random.random() * spread
        else:
            self.due = max(self.start + period, since)
        self.start = max(self.due, now)
        return self.start - now

    def draw(self, now: float, period: float, since: float) -> float:
        """Seconds from `now` to the next start of a Poisson process, with `period` between two in
        the mean: whatever the answers take, and one that is late is caught up."""
        before = now if math.isnan(self.due) else max(self.due, since)
        self.due = self.start = before + random.expovariate(1 / period)
        return max(0.0, self.due - now)
