"""What is started on demand: the proxy's topologies, the broker, and the secrets behind both."""

import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest

from spikelab import paths
from spikelab.health import answers
from spikelab.settings import PORTS, TOPOLOGIES
from tests.stack.test_lifecycle import pid_of
from tests.support.lab import Lab, make_lab, wait_until

PLAIN = [name for name in TOPOLOGIES if name != "tls"]


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab with everything that is started on demand."""
    lab = make_lab(tmp_path_factory.mktemp("extended"))
    try:
        result = lab("up", "--without", "influxdb,grafana", "--with", "proxy,redis")
        assert result.returncode == 0, result.stderr
        yield lab
    finally:
        lab("down")
    assert lab.processes() == []


def secrets(lab: Lab) -> Path:
    return lab.home / "data" / "secrets"


def states(lab: Lab) -> dict[str, str]:
    """Component → state, as `status` prints them."""
    rows = [line.split() for line in lab("status").stdout.splitlines()[1:]]
    return {row[0]: row[1] for row in rows}


def ask_redis(lab: Lab, command: str) -> str:
    with socket.create_connection(("127.0.0.1", int(lab.env["REDIS_PORT"])), 5) as connection:
        connection.sendall(f"{command}\r\n".encode())
        return connection.recv(65536).decode()


@pytest.mark.parametrize("topology", PLAIN)
def test_every_topology_leads_to_the_target(extended: Lab, topology: str) -> None:
    answer = httpx.post(f"{extended.url(TOPOLOGIES[topology])}/echo", content=b"here and back")
    assert (answer.status_code, answer.content) == (200, b"here and back")
    assert ("strict-transport-security" in answer.headers) == (topology == "headers")


@pytest.mark.parametrize(("offered", "chosen"), [(["http/1.1"], "http/1.1"), (["h2"], "h2")])
def test_the_tls_listener_speaks_both_versions(
    extended: Lab, offered: list[str], chosen: str
) -> None:
    context = ssl.create_default_context(cafile=str(secrets(extended) / "ca" / "ca.pem"))
    context.set_alpn_protocols(offered)
    address = ("127.0.0.1", int(extended.env["PROXY_TLS_PORT"]))
    with (
        socket.create_connection(address, 5) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as encrypted,
    ):
        assert encrypted.selected_alpn_protocol() == chosen


@pytest.mark.parametrize("topology", ["tunnel", "tunnel_sidecar"])
def test_a_tunnel_s_far_end_refuses_who_has_no_certificate(extended: Lab, topology: str) -> None:
    far_end = ("127.0.0.2", int(extended.env[TOPOLOGIES[topology]]))
    trusting = ssl.create_default_context(cafile=str(secrets(extended) / "ca" / "ca.pem"))
    with pytest.raises(ssl.SSLError, match="certificate required"):
        get_encrypted(far_end, trusting)
    trusting.load_cert_chain(secrets(extended) / "proxy" / "client.pem")
    assert get_encrypted(far_end, trusting).startswith(b"HTTP/1.1 200")


def get_encrypted(address: tuple[str, int], context: ssl.SSLContext) -> bytes:
    """The first bytes of an answer; under TLS 1.3 a refusal is heard only with them."""
    with (
        socket.create_connection(address, 5) as plain,
        context.wrap_socket(plain, server_hostname="target") as encrypted,
    ):
        encrypted.sendall(b"GET /bytes/1 HTTP/1.1\r\nHost: target\r\n\r\n")
        return encrypted.recv(4096)


@contextmanager
def proxy_alone(lab: Lab, target_port: int, secrets: Path) -> Iterator[None]:
    """The proxy before whatever listens on a port, on the ports of a lab that does not run."""
    wiring = {
        "LAB_BIND": "127.0.0.1",
        "LAB_ROOT": str(paths.ROOT),
        "LAB_SECRETS": str(secrets),
        "TARGET_PORT": str(target_port),
    }
    with subprocess.Popen([paths.ROOT / "host" / "start-proxy"], env=lab.env | wiring) as process:
        try:
            wait_until(lambda: answers(f"{lab.url('PROXY_METRICS_PORT')}/healthz"), 30, "it is up")
            yield
        finally:
            process.terminate()


def test_the_editing_proxy_changes_what_the_target_sees(extended: Lab, tmp_path: Path) -> None:
    """Another proxy of the same configuration before a target that tells its headers."""
    seen: list[dict[str, str]] = []

    class Telling(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    sent = {"User-Agent": "client/1.0 (x)", "X-Internal-User": "root", "Authorization": "Bearer x"}
    with ThreadingHTTPServer(("127.0.0.1", 0), Telling) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        other = make_lab(tmp_path)
        with proxy_alone(other, server.server_port, secrets(extended)):
            answer = httpx.get(other.url("PROXY_HEADERS_PORT"), headers=sent)
            httpx.get(other.url("PROXY_SIDECAR_PORT"), headers=sent)
        server.shutdown()
    edited, untouched = seen
    assert edited["user-agent"] == "client"
    assert edited["authorization"] == "Bearer x"
    assert edited["x-forwarded-for"] == "127.0.0.1"
    assert len(edited["x-request-id"]) == 36
    assert "x-internal-user" not in edited
    assert untouched["user-agent"] == sent["User-Agent"]
    assert untouched["x-internal-user"] == "root"
    assert "server" not in answer.headers
    assert answer.headers["via"].endswith(" spikelab")


def test_a_plain_up_leaves_proxy_and_broker_running_and_the_secrets_as_they_are(
    extended: Lab,
) -> None:
    before = {file: file.read_bytes() for file in secrets(extended).glob("*/*")}
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in before}
    assert len(before) == 7
    # What everyone may read is the authority's certificate.
    assert {name for name, mode in modes.items() if mode != 0o600} == {"ca.pem"}
    assert extended("up", "--without", "influxdb,grafana").returncode == 0
    assert {file: file.read_bytes() for file in secrets(extended).glob("*/*")} == before
    assert states(extended)["proxy"] == states(extended)["redis"] == "running"


def test_prometheus_scrapes_the_proxy_where_it_runs(extended: Lab, lab: Lab) -> None:
    scraped = 'up{job="proxy"}'
    wait_until(lambda: list(extended.prometheus.query(scraped).values()) == [1.0], 30, "scraped")
    assert lab.prometheus.query(scraped) == {}
    assert {"proxy", "redis"}.isdisjoint(states(lab))


def test_the_broker_keeps_its_stream_when_it_is_killed(extended: Lab) -> None:
    ask_redis(extended, "XADD kept * id 1")
    killed = pid_of(extended, "redis-server")
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: answers(f"redis://127.0.0.1:{extended.env['REDIS_PORT']}"), 30, "it is back")
    assert pid_of(extended, "redis-server") != killed
    assert ask_redis(extended, "XLEN kept") == ":1\r\n"


def test_a_dead_supervisord_leaves_neither_proxy_nor_broker_behind(extended: Lab) -> None:
    """The last of the tests that need them."""
    os.kill(int((extended.home / "run" / "supervisord.pid").read_text()), signal.SIGKILL)
    assert extended("down").returncode == 0
    for component in ("redis", "proxy"):
        for variable in PORTS[component]:
            with socket.create_server(("127.0.0.1", int(extended.env[variable]))):
                pass


def test_what_a_plan_needs_is_started_beside_a_running_stack(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    require = "from spikelab.stack import current; current().require(['proxy', 'redis'])"
    command = [str(sys.executable), "-c", require]
    try:
        assert lab("up", "--without", "influxdb,grafana").returncode == 0
        target = pid_of(lab, "java")
        for restarts in (True, False):
            result = subprocess.run(
                command, env=lab.env, cwd=paths.ROOT, capture_output=True, text=True, check=False
            )
            assert result.returncode == 0, result.stderr
            # It learns of the broker at its start, once.
            assert ("restarting the target" in result.stderr) == restarts
        assert pid_of(lab, "java") != target
        assert states(lab)["proxy"] == states(lab)["redis"] == "running"
        broker = f"AUTHZ_REDIS_URL=redis://127.0.0.1:{lab.env['REDIS_PORT']}"
        assert broker in (lab.home / "run" / "target.env").read_text().splitlines()
    finally:
        lab("down")
    assert lab.processes() == []


def test_a_missing_program_is_one_line(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).glob("*"):
            link = programs / program.name
            if program.name not in ("redis-server", "valkey-server") and not link.exists():
                link.symlink_to(program)
    lab = make_lab(tmp_path / "home")
    result = Lab({**lab.env, "PATH": str(programs)})("up", "--with", "redis")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == (
        "lab: redis needs redis-server, which is not on PATH: install it "
        "(apt-get install redis-server), or use the docker runtime"
    )
    assert lab.processes() == []


def test_an_unknown_component_is_one_line_with_the_nearest_name(lab: Lab) -> None:
    result = lab("up", "--with", "proxi")
    assert result.returncode == 2
    assert "(did you mean 'proxy'?)" in result.stderr.splitlines()[-1]
