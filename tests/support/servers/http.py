"""What the tests' servers share: HTTP/1.1 on a free port of loopback, in a process of its own."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from spikelab import paths

_END_OF_HEADERS = b"\r\n\r\n"
_BACKLOG = 4096


class Connection(asyncio.Protocol):
    """Requests without a body, one after the other, as a load driver sends them."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *requests, self._received = (self._received + data).split(_END_OF_HEADERS)
        for request in requests:
            self.take(request)

    def take(self, request: bytes) -> None:
        """A request has come; it is answered now or later."""
        raise NotImplementedError

    def write(self, body: bytes) -> bool:
        """Answers; False when the client has gone."""
        if self._transport.is_closing():
            return False
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)
        return True


async def serve(connection: Callable[[], Connection], port: int = 0) -> None:
    """Serves until it is stopped; prints its port, a free one for 0."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(connection, "127.0.0.1", port, backlog=_BACKLOG)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def process(module: str, *arguments: str) -> Iterator[str]:
    """One of these servers as a process: its URL."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, cwd=paths.ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.kill()
