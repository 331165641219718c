"""Waiting for HTTP health, several components at once."""

import socket
import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import httpx

from spikelab.errors import LabError
from spikelab.http_client import client

_POLL_SECONDS = 0.1


def answers(url: str, timeout_seconds: float = 1.0) -> bool:
    """Whether a GET is answered with a status below 400; at a redis:// URL, whether a PING is."""
    if url.startswith("redis:"):
        return _pongs(url, timeout_seconds)
    try:
        return client.get(url, timeout=timeout_seconds).status_code < 400
    except httpx.HTTPError:
        return False


def _pongs(url: str, timeout_seconds: float) -> bool:
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname, parts.port), timeout_seconds) as connection:
            connection.sendall(b"PING\r\n")
            # While it still reads its file the answer is an error.
            return connection.recv(16) == b"+PONG\r\n"
    except OSError:
        return False


def wait_healthy(
    urls: Mapping[str, str],
    timeout_seconds: float,
    on_healthy: Callable[[str], None] = lambda name: None,
    failure: Callable[[str], str | None] = lambda name: None,
) -> None:
    """Waits until every URL answers. `failure(name)` explains a component that has given up.

    Raises LabError naming the first component that failed or did not answer in time.
    """
    waiting = dict(urls)
    deadline = time.monotonic() + timeout_seconds
    while True:
        for name in [name for name, url in waiting.items() if answers(url)]:
            del waiting[name]
            on_healthy(name)
        if not waiting:
            return
        for name in waiting:
            if problem := failure(name):
                raise LabError(f"{name} did not start: {problem}")
        if time.monotonic() > deadline:
            name = next(iter(waiting))
            raise LabError(
                f"{name} is not healthy after {timeout_seconds:.0f} s: ./lab logs {name}"
            )
        time.sleep(_POLL_SECONDS)
