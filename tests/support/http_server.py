"""A small real server: the target of a short run and the store of its events."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Request:
    method: str
    path: str
    bytes: int
    headers: Message
    came: float


class Server:
    """Target and store in one. Answers with `status` and `text`, after `delay_seconds`, or after
    the next of `delays`; of a redirect `location` says where. Notes when each request came."""

    def __init__(self) -> None:
        self.status, self.text, self.delay_seconds = 200, "hello", 0.0
        self.delays: Iterator[float] | None = None
        self.location: str | None = None
        self.store_status, self.store_delay_seconds = 204, 0.0
        self.requests: list[Request] = []
        self.points: list[str] = []
        self.connections = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                super().setup()
                server.connections += 1

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                status, text = server.take(self.command, self.path, body, self.headers)
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                if server.location is not None:
                    self.send_header("Location", server.location)
                self.end_headers()
                self.wfile.write(text.encode())

            do_GET = do_POST = do_PUT = answer  # noqa: N815

            def log_message(self, *_: object) -> None: ...

        class Listener(ThreadingHTTPServer):
            request_queue_size = 1024

            def handle_error(self, *_: object) -> None: ...

        self._listener = Listener(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._listener.server_port}"
        threading.Thread(target=self._listener.serve_forever, daemon=True).start()

    def take(self, method: str, path: str, body: bytes, headers: Message) -> tuple[int, str]:
        """Status and text of the answer."""
        if path.startswith("/write"):
            time.sleep(self.store_delay_seconds)
            if self.store_status == 204:
                self.points += body.decode().split("\n")
            return self.store_status, ""
        delay = self.delay_seconds if self.delays is None else next(self.delays)
        self.requests.append(Request(method, path, len(body), headers, time.monotonic()))
        time.sleep(delay)
        return self.status, self.text

    def regions(self) -> dict[str, tuple[str, int, int]]:
        """Phase to state, start and end (ms since 1970), as a store that overwrites has them."""
        regions = {}
        for point in self.points:
            tags, fields, started = point.rsplit(" ", 2)
            state = fields.split('state="')[1].split('"')[0]
            ends = int(fields.split("timeEnd=")[1].removesuffix("i"))
            regions[tags.split("phase=")[1].split(" ")[0]] = (state, int(started), ends)
        return regions

    def close(self) -> None:
        self._listener.shutdown()
        self._listener.server_close()
