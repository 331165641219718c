"""A server of known capacity: c workers, first come, first served, with chosen service times.

    python -m tests.support.servers.known_capacity --workers 4 --service 0.01 --times fixed

It prints its port, then serves HTTP/1.1 until it is stopped. No work is done: a request goes to the
worker that is free first, and its answer is sent at the moment that follows from this (up to 1 ms
later: epoll counts in milliseconds). So its capacity does not hang on the machine, as long as that
carries the requests at all.
"""

import asyncio
import heapq
import random
from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import AbstractContextManager

from tests.support.servers import http

_BODY = b"hello\n"

# Seconds of service, from the seconds since the first request.
ServiceTimes = Callable[[float], float]


def fixed(seconds: float) -> ServiceTimes:
    """All the same: the capacity is workers / seconds."""
    return lambda _: seconds


def exponential(seconds: float, seed: int) -> ServiceTimes:
    """Random with that mean; where requests come at random, the wait follows Erlang's C formula."""
    source = random.Random(seed)
    return lambda _: source.expovariate(1 / seconds)


def drifting(seconds: float, growth: float) -> ServiceTimes:
    """Longer by the share `growth` of `seconds` with every minute."""
    return lambda age: seconds * (1 + growth * age / 60)


class Workers:
    """Who is free when."""

    def __init__(self, workers: int, service: ServiceTimes) -> None:
        self._free_at = [0.0] * workers
        self._service = service
        self._began: float | None = None

    def take(self, now: float) -> float:
        """The moment at which a request that comes `now` is answered."""
        if self._began is None:
            self._began = now
        done = max(now, self._free_at[0]) + self._service(now - self._began)
        heapq.heapreplace(self._free_at, done)
        return done


class Connection(http.Connection):
    """What is answered when a worker has done it."""

    def __init__(self, workers: Workers) -> None:
        super().__init__()
        self._workers = workers

    def take(self, request: bytes) -> None:
        # A client that has gone leaves its work behind, as with most servers.
        self.loop.call_at(self._workers.take(self.loop.time()), self.write, _BODY)


def known_capacity(*arguments: str) -> AbstractContextManager[str]:
    """Such a server as a process, with these arguments: its URL."""
    return http.process("tests.support.servers.known_capacity", *arguments)


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--service", type=float, default=0.01, help="seconds, the mean")
    parser.add_argument("--times", choices=["fixed", "exponential", "drifting"], default="fixed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--growth", type=float, default=0.5, help="a minute, of drifting times")
    asked = parser.parse_args()
    times = {
        "fixed": lambda: fixed(asked.service),
        "exponential": lambda: exponential(asked.service, asked.seed),
        "drifting": lambda: drifting(asked.service, asked.growth),
    }
    workers = Workers(asked.workers, times[asked.times]())
    asyncio.run(http.serve(lambda: Connection(workers), asked.port))


if __name__ == "__main__":
    main()
