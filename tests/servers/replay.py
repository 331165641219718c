"""A server that replays a distribution of delays: each quantile of it equally often, shuffled.

    python -m tests.servers.replay --seed 1

It prints its port, then answers HTTP/1.1 requests without a body until it is stopped. `GET /sent`
answers at once with a JSON list: how long each answer took here, in seconds, from the request's
arrival to the moment at which it was sent.
"""

import asyncio
import json
import math
import random
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import NormalDist

from spikelab import paths

SHORTEST_SECONDS, LONGEST_SECONDS = 0.02, 0.4
QUANTILES = 1000
# The two ends are so many standard deviations of the logarithm from its middle.
_DEVIATIONS = 2.5
_END_OF_HEADERS = b"\r\n\r\n"
_BACKLOG = 4096


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


class Connection(asyncio.Protocol):
    """Requests without a body, one after the other."""

    def __init__(self, delays: Iterator[float], sent: list[float]) -> None:
        self._delays = delays
        self._sent = sent
        self._loop = asyncio.get_running_loop()
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        now = self._loop.time()
        *requests, self._received = (self._received + data).split(_END_OF_HEADERS)
        for request in requests:
            if request.startswith(b"GET /sent "):
                self._write(json.dumps(self._sent).encode())
            else:
                self._loop.call_at(now + next(self._delays), self._answer, now)

    def _answer(self, came: float) -> None:
        if not self._transport.is_closing():
            self._sent.append(self._loop.time() - came)
            self._write(b"hello\n")

    def _write(self, body: bytes) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)


async def serve(delays: Iterator[float]) -> None:
    loop, sent = asyncio.get_running_loop(), list[float]()
    server = await loop.create_server(
        lambda: Connection(delays, sent), "127.0.0.1", 0, backlog=_BACKLOG
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def replay(seed: int) -> Iterator[str]:
    """Such a server as a process: its URL."""
    command = [sys.executable, "-m", "tests.servers.replay", "--seed", str(seed)]
    with subprocess.Popen(command, cwd=paths.ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    asyncio.run(serve(shuffled(log_normal_quantiles(), parser.parse_args().seed)))


if __name__ == "__main__":
    main()
