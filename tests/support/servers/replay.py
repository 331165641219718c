"""A server that replays a distribution of delays: each quantile of it equally often, shuffled.

    python -m tests.support.servers.replay --seed 1

It prints its port, then answers HTTP/1.1 requests without a body until it is stopped. `GET /sent`
answers at once with a JSON list: how long each answer took here, in seconds, from the request's
arrival to the moment at which it was sent.
"""

import asyncio
import json
import math
import random
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import AbstractContextManager
from statistics import NormalDist

from tests.support.servers import http

SHORTEST_SECONDS, LONGEST_SECONDS = 0.02, 0.4
QUANTILES = 1000
# The two ends are so many standard deviations of the logarithm from its middle.
_DEVIATIONS = 2.5


def log_normal_quantiles() -> list[float]:
    """Seconds, ascending: quantiles of a log-normal distribution that is cut off at both ends."""
    low, high = math.log(SHORTEST_SECONDS), math.log(LONGEST_SECONDS)
    normal = NormalDist((low + high) / 2, (high - low) / 2 / _DEVIATIONS)
    first, last = normal.cdf(low), normal.cdf(high)
    shares = ((each + 0.5) / QUANTILES for each in range(QUANTILES))
    return [math.exp(normal.inv_cdf(first + share * (last - first))) for share in shares]


def shuffled(values: list[float], seed: int) -> Iterator[float]:
    """All of them in one order after the other, for ever."""
    source = random.Random(seed)
    while True:
        yield from source.sample(values, len(values))


class Connection(http.Connection):
    """What is answered after the next delay."""

    def __init__(self, delays: Iterator[float], sent: list[float]) -> None:
        super().__init__()
        self._delays = delays
        self._sent = sent

    def take(self, request: bytes) -> None:
        if request.startswith(b"GET /sent "):
            self.write(json.dumps(self._sent).encode())
        else:
            came = self.loop.time()
            self.loop.call_at(came + next(self._delays), self._answer, came)

    def _answer(self, came: float) -> None:
        seconds = self.loop.time() - came
        if self.write(b"hello\n"):
            self._sent.append(seconds)


def replay(seed: int) -> AbstractContextManager[str]:
    """Such a server as a process: its URL."""
    return http.process("tests.support.servers.replay", "--seed", str(seed))


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    delays, sent = shuffled(log_normal_quantiles(), parser.parse_args().seed), list[float]()
    asyncio.run(http.serve(lambda: Connection(delays, sent)))


if __name__ == "__main__":
    main()
