"""The distribution of response times in a phase, as each driver's summary has it.

Percentiles are taken from it in one way, whatever the driver, and distributions of several drivers
are merged. Its ranks are fine, so a failed or dropped request moves a percentile by one rank, not
to the next printed one.
"""

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self


def _steps(first: float, last: float, step: float) -> list[float]:
    """From `first` to `last`, each rounded to what a decimal fraction says."""
    return [round(first + i * step, 6) for i in range(round((last - first) / step) + 1)]


# Shares of the answers, the fastest first: half a percent apart, and finer the rarer the answers
# are. One dropped request of 10,000 moves p50 to p99.9 by less than a rank.
RANKS = (
    *_steps(0.0, 0.99, 0.005),
    *_steps(0.9905, 0.999, 0.0005),
    *_steps(0.99905, 0.9999, 0.00005),
    1.0,
)


@dataclass(frozen=True)
class Distribution:
    """`seconds[i]`: the time that the share `ranks[i]` of `count` values do not exceed.

    `ranks` ascend from 0, the fastest, to 1, the slowest. Without a value both are empty.
    """

    count: int = 0
    ranks: Sequence[float] = ()
    seconds: Sequence[float] = ()

    def __post_init__(self) -> None:
        if self.count < 0 or bool(self.count) != bool(self.ranks):
            raise ValueError("a distribution has ranks exactly where it has values")
        if len(self.ranks) != len(self.seconds):
            raise ValueError("a distribution has as many times as ranks")
        if self.count and (self.ranks[0] != 0 or self.ranks[-1] != 1):
            raise ValueError("the ranks of a distribution go from 0 to 1")
        if any(_descends(column) for column in (self.ranks, self.seconds)):
            raise ValueError("ranks and times of a distribution ascend")

    @classmethod
    def of(cls, seconds: Sequence[float], ranks: Sequence[float] = RANKS) -> Self:
        """Of values that are all known, in seconds and in any order."""
        if not seconds:
            return cls()
        ascending = sorted(seconds)
        last = len(ascending) - 1
        # No finer than the values are.
        own = ranks if len(ranks) <= last else [i / last for i in range(last)] + [1.0]
        if not last:
            own = [0.0, 1.0]
        seconds_at = (_between(ascending, rank * last) for rank in own)
        return cls(len(ascending), tuple(own), tuple(seconds_at))

    @classmethod
    def merged(cls, parts: Sequence["Distribution"]) -> Self:
        """Of all the values of several: at each known time the ranks of all, by their counts."""
        filled = [part for part in parts if part.count]
        count = sum(part.count for part in filled)
        ranks: list[float] = []
        seconds: list[float] = []
        for time in sorted({time for part in filled for time in part.seconds}):
            at = [part.ranks_of(time) for part in filled]
            # A time that many took has two ranks: of the first and of the last of them.
            for end in (0, 1):
                below = sum(each[end] * part.count for each, part in zip(at, filled, strict=True))
                if not ranks or below / count > ranks[-1]:
                    ranks.append(below / count)
                    seconds.append(time)
        return cls(count, tuple(ranks), tuple(seconds))

    def percentile_seconds(self, share: float, of: int | None = None) -> float:
        """The time that this share of the requests do not exceed.

        `of`: how many there were in all; those without a value here (failed, dropped) are
        infinite. Between two values it is interpolated, as k6 does; between a value and infinity it
        is the value, so that p99 is finite where exactly 1 % failed, as a count of misses has it.
        `math.inf` beyond; without any request `math.nan`.
        """
        everyone = self.count if of is None else of
        if everyone < self.count:
            raise ValueError("more values than requests")
        if not everyone:
            return math.nan
        # Rounded: a share of a count is rarely a number that binary has exactly.
        position = round(share * (everyone - 1), 6)
        last = self.count - 1
        if position > last:
            if math.ceil(round(share * everyone, 6)) > self.count:
                return math.inf
            position = last
        return self._at(position / last if last else 1.0)

    def ranks_of(self, seconds: float) -> tuple[float, float]:
        """The share of values below this time, and the share not above it."""
        return self._rank(seconds, below=True), self._rank(seconds, below=False)

    def _rank(self, seconds: float, below: bool) -> float:
        find = bisect_left if below else bisect_right
        after = find(self.seconds, seconds)
        if after == 0:
            return 0.0
        if after == len(self.seconds):
            return 1.0
        low, high = self.seconds[after - 1], self.seconds[after]
        if below and high == seconds:
            return self.ranks[after]
        if low == seconds:
            return self.ranks[after - 1]
        part = (seconds - low) / (high - low)
        return self.ranks[after - 1] + part * (self.ranks[after] - self.ranks[after - 1])

    def _at(self, rank: float) -> float:
        after = bisect_left(self.ranks, rank)
        if self.ranks[after] == rank or not after:
            return self.seconds[after]
        low, high = self.ranks[after - 1], self.ranks[after]
        part = (rank - low) / (high - low)
        return self.seconds[after - 1] + part * (self.seconds[after] - self.seconds[after - 1])


def _between(ascending: Sequence[float], position: float) -> float:
    below = math.floor(position)
    above = min(below + 1, len(ascending) - 1)
    return ascending[below] + (position - below) * (ascending[above] - ascending[below])


def _descends(values: Sequence[float]) -> bool:
    return any(after < before for before, after in itertools.pairwise(values))
