"""A server over TLS whose handshakes take a known time."""

import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

_SUBJECT = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 that it has signed itself, and its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    files = ["-nodes", "-keyout", str(key), "-out", str(cert), "-days", "2"]
    subprocess.run([*make, *files, *_SUBJECT], check=True, capture_output=True)
    return cert, key


@contextmanager
def slow_handshakes(
    folder: Path, seconds: float, frozen_seconds: tuple[float, float] = (0, 0)
) -> Iterator[str]:
    """A server that lets a client wait so long before it goes on with its handshake: its URL.
    While it is frozen, from and until so many seconds after its first connection, it waits for the
    end of that."""
    began: list[float] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate(folder))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            began.append(time.monotonic())
            now = time.monotonic() - began[0]
            if frozen_seconds[0] <= now < frozen_seconds[1]:
                time.sleep(frozen_seconds[1] - now)
            time.sleep(seconds)
            self.request = context.wrap_socket(self.request, server_side=True)
            super().setup()

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_: object) -> None: ...

    class Listener(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None: ...

    server = Listener(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"https://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
