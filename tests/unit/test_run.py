"""The addresses that load may go to: all of a name are checked, and drivers use the checked one."""

import json
import os
import socket
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from spikelab.drivers.k6 import addresses_with_ports
from spikelab.errors import UsageError
from spikelab.run import checked_hosts
from spikelab.stack.programs import locust_program
from tests.support.http_server import Server
from tests.support.k6_scripts import K6Runs, needs_k6, plan

FOREIGN, FOREIGN_V6 = "192.0.2.7", "2001:db8::7"
RATE = {"name": "steady", "kind": "rate", "value": 20, "duration": "1s"}


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Names and their addresses, as a resolver gives them."""
    known: dict[str, list[str]] = {}
    look_up = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, *others: Any, **named: Any) -> list[Any]:
        found = known.get(host, [host])
        return [each for address in found for each in look_up(address, port, *others, **named)]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return known


def port_of(server: Server) -> int:
    return int(server.url.rpartition(":")[2])


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1", FOREIGN],
        [FOREIGN, "127.0.0.1"],
        ["127.0.0.1", "::1", FOREIGN_V6],
    ],
)
def test_a_name_with_a_foreign_address_is_refused_and_the_address_named(
    names: dict[str, list[str]], server: Server, addresses: list[str]
) -> None:
    names["shop.test"] = addresses
    foreign = next(each for each in addresses if each in (FOREIGN, FOREIGN_V6))
    url = f"http://shop.test:{port_of(server)}"
    with pytest.raises(UsageError, match=f"shop.test is {foreign}, which is not this machine"):
        checked_hosts({url}, owned=False)


@pytest.mark.parametrize("address", [FOREIGN, f"[{FOREIGN_V6}]", f"[::ffff:{FOREIGN}]"])
def test_a_foreign_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="is not this machine"):
        checked_hosts({f"http://{address}:8080"}, owned=False)


def test_a_name_is_looked_up_once_and_the_address_that_answers_is_the_one(
    names: dict[str, list[str]], server: Server
) -> None:
    port = port_of(server)
    # Of both, the server listens on the second alone.
    names["shop.test"] = ["::1", "127.0.0.1"]
    assert checked_hosts({f"http://shop.test:{port}"}, owned=False) == {
        f"shop.test:{port}": "127.0.0.1"
    }
    assert checked_hosts({server.url}, owned=False) == {}


def test_a_name_that_cannot_be_pinned_is_refused(
    names: dict[str, list[str]], server: Server
) -> None:
    names["my_shop"] = ["127.0.0.1"]
    with pytest.raises(UsageError, match=r"my_shop.*give 127\.0\.0\.1 instead"):
        checked_hosts({f"http://my_shop:{port_of(server)}"}, owned=False)


@needs_k6
def test_k6_loads_the_address_that_was_checked(server: Server, tmp_path: Path) -> None:
    # No resolver knows the name.
    key, url = f"shop.test:{port_of(server)}", server.url.replace("127.0.0.1", "shop.test")
    config = tmp_path / "k6-config.json"
    config.write_text(json.dumps({"hosts": addresses_with_ports({key: "127.0.0.1"})}))
    given = {**plan(server, [RATE]), "target": {"url": url}}
    run = K6Runs(tmp_path).run("steady", given, "--config", str(config))
    assert run.code == 0, run.said
    assert {request.headers["Host"] for request in server.requests} == {key}


def test_k6_takes_an_ipv6_address_with_its_port() -> None:
    assert addresses_with_ports({"shop.test:80": "::1"}) == {"shop.test:80": "[::1]:80"}


@pytest.mark.timed
def test_locust_loads_the_address_that_was_checked(server: Server, tmp_path: Path) -> None:
    key, url = f"shop.test:{port_of(server)}", server.url.replace("127.0.0.1", "shop.test")
    given = {**plan(server, [{**RATE, "duration": "2s"}]), "hosts": {key: "127.0.0.1"}}
    said = locust(tmp_path, {**given, "target": {"url": url}}, url)
    assert said.returncode == 0, said.stderr
    assert {request.headers["Host"] for request in server.requests} == {key}


def locust(folder: Path, given: dict[str, Any], url: str) -> subprocess.CompletedProcess[str]:
    plan_file = folder / "plan.json"
    plan_file.write_text(json.dumps({**given, "driver": "locust"}))
    command = [str(locust_program()), "-f", "locust/hello.py", "--host", url, "--headless"]
    env = {**os.environ, "LAB_PLAN": str(plan_file)}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)


class Tls:
    """An HTTPS server for one name; `asked` are those that clients named."""

    def __init__(self, folder: Path, name: str) -> None:
        self.certificate, key = folder / "cert.pem", folder / "key.pem"
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
                *("-keyout", str(key), "-out", str(self.certificate), "-subj", f"/CN={name}"),
                *("-addext", f"subjectAltName=DNS:{name}"),
            ],
            check=True,
            capture_output=True,
        )
        self.asked: set[str | None] = set()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None: ...

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        context.sni_callback = lambda _, name, __: self.asked.add(name)
        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@needs_k6
@pytest.mark.parametrize(("certified", "failed"), [("shop.test", 0), ("other.test", 20)])
def test_tls_still_verifies_the_name_and_not_the_address(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certified: str, failed: int
) -> None:
    tls = Tls(tmp_path, certified)
    monkeypatch.setenv("SSL_CERT_FILE", str(tls.certificate))
    config = tmp_path / "k6-config.json"
    pinned = addresses_with_ports({f"shop.test:{tls.port}": "127.0.0.1"})
    config.write_text(json.dumps({"hosts": pinned}))
    given = {**plan(server, [RATE]), "target": {"url": f"https://shop.test:{tls.port}"}}
    try:
        run = K6Runs(tmp_path).run("steady", given, "--config", str(config))
    finally:
        tls.server.shutdown()
        tls.server.server_close()
    assert tls.asked == {"shop.test"}, run.said
    failures = run.summary["metrics"].get("failures", {"count": 0})["count"]
    assert failures == pytest.approx(failed, abs=1), run.said
