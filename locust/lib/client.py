"""Locust's HTTP client, watched: it tells one figure of a request, from its own start, and here its
connections and answers say when they come and go.
"""

from typing import Any

from geventhttpclient import client as http
from geventhttpclient.connectionpool import ConnectionPool, SSLConnectionPool
from geventhttpclient.response import HTTPSocketPoolResponse

from lib.timing import (
    CONNECTING,
    CURRENT,
    RECEIVING,
    SENDING,
    TLS,
    WAITING,
    WAITING_FOR_CONNECTION,
)


def _end(part: int) -> None:
    timing = CURRENT.get()
    if timing is not None:
        timing.end(part)


# Of a request whose connection the server closes as it is sent.
_MOST_TRIES = 10


class _Connections(ConnectionPool):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.size = min(self.size, _MOST_TRIES)  # the client tries as often as it may connect

    def get_socket(self) -> Any:
        _end(SENDING)
        try:
            return super().get_socket()
        finally:
            _end(WAITING_FOR_CONNECTION)

    def _connect_socket(self, sock: Any, address: Any) -> Any:
        _end(WAITING_FOR_CONNECTION)
        try:
            return super()._connect_socket(sock, address)
        finally:
            _end(CONNECTING)


class _TlsConnections(SSLConnectionPool, _Connections):
    def _connect_socket(self, sock: Any, address: Any) -> Any:
        try:
            return super()._connect_socket(sock, address)
        finally:
            _end(TLS)


class _Answer(HTTPSocketPoolResponse):
    _began = False

    def __init__(self, *args: Any, **options: Any) -> None:
        self._timing = CURRENT.get()
        if self._timing is not None:
            self._timing.end(SENDING)
        super().__init__(*args, **options)

    def feed(self, data: str | bytes) -> None:
        if not self._began:
            self._began = True
            if self._timing is not None:
                self._timing.end(WAITING)
        super().feed(data)

    def _on_message_complete(self) -> None:
        if self._timing is not None:
            self._timing.end(RECEIVING)
        super()._on_message_complete()


def watch_requests() -> None:
    """Every client that is made from here on notes the moments of requests that have begun."""
    http.ConnectionPool = _Connections  # type: ignore[attr-defined]
    http.SSLConnectionPool = _TlsConnections  # type: ignore[attr-defined]
    http.HTTPSocketPoolResponse = _Answer  # type: ignore[attr-defined]
