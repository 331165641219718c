"""Whether components answer, and the HTTP client of all that the lab asks them."""

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

import httpx

from spikelab.errors import LabError

# The lab's own HTTP goes to its components on this machine, so never by way of a proxy.
client = httpx.Client(trust_env=False)

_POLL_SECONDS = 0.1
# A component that is busy starting takes longer for an answer than one that is asked in passing.
_ANSWER_SECONDS = 2.0


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


def unanswered(
    urls: Mapping[str, str],
    timeout_seconds: float,
    while_waiting: Callable[[Sequence[str]], None] = lambda names: None,
) -> list[str]:
    """The names whose URLs do not answer within that time; each has to answer once.

    `while_waiting` gets those that do not answer yet, and may raise.
    """
    missing = list(urls)
    deadline = time.monotonic() + timeout_seconds
    while missing := [name for name in missing if not answers(urls[name], _ANSWER_SECONDS)]:
        while_waiting(missing)
        if time.monotonic() > deadline:
            break
        time.sleep(_POLL_SECONDS)
    return missing


def wait_healthy(
    urls: Mapping[str, str],
    timeout_seconds: float,
    failure: Callable[[str], str | None] = lambda name: None,
) -> None:
    """Waits until every URL answers. `failure(name)` explains a component that has given up.

    Raises LabError naming the first component that failed or did not answer in time.
    """

    def require_starting(names: Sequence[str]) -> None:
        for name in names:
            if problem := failure(name):
                raise LabError(f"{name} did not start: {problem}")

    for name in unanswered(urls, timeout_seconds, require_starting):
        raise LabError(f"{name} is not healthy after {timeout_seconds:.0f} s: ./lab logs {name}")
