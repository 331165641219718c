"""Connections that Tomcat holds, predicted and counted, at random settings.

Each setting: the target restarted with it, more clients at once than it has room for, and the peak
of the server's established connections over at least two rounds of SYN retries.
"""

import random
import selectors
import socket
import struct
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Self
from urllib.parse import urlsplit

from bench.running_lab import running_lab
from spikelab.machine import sysctl
from spikelab.prediction.model import Server, Spike, simulate
from spikelab.settings import (
    Endpoints,
    load_stack_settings,
    load_target_declaration,
)
from spikelab.stack import current
from spikelab.stack.base import Runtime
from spikelab.stack.locks import only_run
from spikelab.stores import first, read_samples

# Longer than a setting is looked at: no place becomes free.
_SERVICE_SECONDS = 60
# Clients begin as k6's users do: faster, a short accept queue drops most of them again and again.
_STARTS_A_TICK, _TICK_SECONDS = 2, 0.001
# Dropped SYNs come back after 1 and 2 s.
_TWO_ROUNDS_SECONDS = 2.5
# A server that is not full by then does not become it.
_MOST_SECONDS = 30.0
_COUNT_EVERY_SECONDS = 0.2
_LATE_CLIENTS = 20
# A connection costs a file in this process and one in the target.
_MOST_USERS = 9_500


@dataclass(frozen=True)
class RandomSetting:
    """What decides about connections, and the threads, which do not."""

    threads: int
    max_connections: int
    accept_count: int

    def server(self) -> Server:
        """As the model sees it: the kernel caps the accept-count."""
        somaxconn = int(sysctl("net/core/somaxconn") or self.accept_count)
        return Server(
            self.threads, self.max_connections, min(self.accept_count, somaxconn), idle_seconds=60
        )

    @property
    def users(self) -> int:
        """More than there is room for, so that some stay outside."""
        return self.server().capacity + max(20, self.server().capacity // 50)

    def __str__(self) -> str:
        return (
            f"threads {self.threads:>3}, max-connections {self.max_connections:>4}, "
            f"accept-count {self.accept_count:>4}"
        )


NAMED = (RandomSetting(1, 1, 1), RandomSetting(200, 8192, 100), RandomSetting(50, 100, 5000))


def settings(seed: int, most_users: int = _MOST_USERS) -> Iterator[RandomSetting]:
    """The named ones, then random ones without end, log-uniform; those that need more users are
    left out."""
    yield from (each for each in NAMED if each.users <= most_users)
    draw = random.Random(seed)

    def up_to(most: int) -> int:
        return min(most, int((most + 1) ** draw.random()))

    while True:
        drawn = RandomSetting(up_to(500), up_to(8192), up_to(5000))
        if drawn.users <= most_users:
            yield drawn


@dataclass(frozen=True)
class Counted:
    """Established connections of one setting at their peak."""

    predicted: int
    measured: int
    users: int
    seconds: float

    @property
    def equal(self) -> bool:
        return self.predicted == self.measured


def count(runtime: Runtime, setting: RandomSetting) -> Counted:
    """Restarts the target with the setting, fills it, and counts at the server."""
    began = time.monotonic()
    _restart(runtime, setting)
    spike = Spike(setting.users, _SERVICE_SECONDS, timeout_seconds=_MOST_SECONDS)
    predicted = simulate(setting.server(), spike).established_peak
    endpoints = runtime.endpoints()
    with Clients(endpoints.target) as clients:
        clients.start(setting.users)
        measured = _peak(endpoints, clients, predicted)
    return Counted(predicted, measured, clients.started, time.monotonic() - began)


def _restart(runtime: Runtime, setting: RandomSetting) -> None:
    declaration = load_target_declaration()
    defaults = declaration.given(load_stack_settings().values)
    runtime.restart_target(
        declaration.resolve(
            defaults,
            {
                "TOMCAT_MAX_THREADS": setting.threads,
                "TOMCAT_MAX_CONNECTIONS": setting.max_connections,
                "TOMCAT_ACCEPT_COUNT": setting.accept_count,
                "TOMCAT_CONNECTION_TIMEOUT": 60_000,
            },
        )
    )


class Clients:
    """Sockets that connect and then ask once for an answer that does not come."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname, parts.port)
        self._request = (
            f"GET /hello?ms={_SERVICE_SECONDS * 1000} HTTP/1.1\r\nHost: target\r\n\r\n".encode()
        )
        self._connections: list[socket.socket] = []
        self._connecting = selectors.DefaultSelector()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._connecting.close()
        for client in self._connections:
            # A reset leaves no port in TIME_WAIT for the next setting.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()

    @property
    def started(self) -> int:
        return len(self._connections)

    def start(self, users: int) -> None:
        """So many more, two a millisecond at most."""
        for number in range(users):
            client = socket.socket()
            self._connections.append(client)
            client.setblocking(False)
            client.connect_ex(self._address)
            self._connecting.register(client, selectors.EVENT_WRITE)
            if number % _STARTS_A_TICK:
                self.work(_TICK_SECONDS)

    def work(self, seconds: float) -> None:
        """Sends the requests of those who are connected by now."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if not self._connecting.get_map():
                time.sleep(left)
                return
            for key, _ in self._connecting.select(left):
                client = key.fileobj
                assert isinstance(client, socket.socket)
                self._connecting.unregister(client)
                with suppress(OSError):
                    client.send(self._request)


def _peak(endpoints: Endpoints, clients: Clients, predicted: int) -> int:
    """The most that were counted until two rounds of retries after the last client; while the
    server is not full, more come."""
    began = last_start = time.monotonic()
    peak = 0
    while True:
        clients.work(_COUNT_EVERY_SECONDS)
        samples = read_samples(f"{endpoints.sockets}/metrics")
        peak = max(peak, int(first(samples, "sockets_established") or 0))
        now = time.monotonic()
        if now - last_start >= _TWO_ROUNDS_SECONDS:
            if peak >= predicted or now - began >= _MOST_SECONDS:
                return peak
            clients.start(_LATE_CLIENTS)
            last_start = now - _TWO_ROUNDS_SECONDS / 2


def _arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--settings", type=int, default=100, help="how many in all, default 100")
    parser.add_argument("--first", type=int, default=1, help="the number to go on with, default 1")
    parser.add_argument("--seed", type=int, default=1, help="of the random ones, default 1")
    parser.add_argument(
        "--most-users", type=int, default=_MOST_USERS, help=f"at once, default {_MOST_USERS:,}"
    )
    return parser.parse_args()


def main() -> int:
    arguments = _arguments()
    drawn = settings(arguments.seed, arguments.most_users)
    chosen = islice(enumerate(drawn, 1), arguments.settings)
    results = []
    with running_lab(), only_run() as announce:
        announce("bench.connections")
        for number, setting in chosen:
            if number < arguments.first:
                continue
            result = count(current(), setting)
            results.append(result)
            print(
                f"{number:>4}  {setting}, users {result.users:>4}: "
                f"predicted {result.predicted:>4}, measured {result.measured:>4}, "
                f"{'equal' if result.equal else 'DIFFERENT'} ({result.seconds:.1f} s)",
                flush=True,
            )
    equal = sum(result.equal for result in results)
    seconds = sum(result.seconds for result in results) / max(1, len(results))
    print(
        f"{equal} of {len(results)} equal (seed {arguments.seed}, somaxconn "
        f"{sysctl('net/core/somaxconn')}, {seconds:.1f} s a setting)"
    )
    return 0 if equal == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
