"""k6/*.js time what a user waits: from the moment a request was due to its last byte."""

import os
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from itertools import chain, cycle, repeat
from pathlib import Path
from typing import Any

import pytest

from spikelab.drivers.base import PhaseSummary
from spikelab.drivers.k6 import read_summary
from tests.support.http_server import Server
from tests.support.k6_scripts import K6Runs, Running, needs_k6, plan

pytestmark = [needs_k6, pytest.mark.timed]

# A machine that is busy with other tests makes the driver late for a moment.
PATIENCE_SECONDS = 0.15


def rate(value: float, duration: str, **keys: object) -> dict[str, Any]:
    return {"name": "p", "kind": "rate", "value": value, "duration": duration, **keys}


def users(value: int, duration: str, **keys: object) -> dict[str, Any]:
    return {"name": "p", "kind": "users", "value": value, "duration": duration, **keys}


def found(run: Running) -> PhaseSummary:
    (phase,) = read_summary(run.wait().summary_file, {"p": 0})
    return phase


def percentile(phase: PhaseSummary, share: float) -> float:
    assert phase.latency is not None
    return phase.latency.percentile_seconds(share)


def parts(phase: PhaseSummary) -> dict[str, float]:
    assert phase.latency_parts_seconds is not None
    return phase.latency_parts_seconds.model_dump()


@pytest.fixture
def slow_handshakes(tmp_path: Path, server: Server) -> Iterator[str]:
    """The URL of a TLS server whose handshakes begin 200 ms late; its certificate is `ca.pem`."""
    key, certificate = tmp_path / "key.pem", tmp_path / "ca.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    words += ["-keyout", str(key), "-out", str(certificate), "-subj", "/CN=localhost"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(words, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        threading.Thread(target=accept, args=(listener, context), daemon=True).start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"


def accept(listener: socket.socket, context: ssl.SSLContext) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=answer, args=(connection, context), daemon=True).start()


def answer(connection: socket.socket, context: ssl.SSLContext) -> None:
    time.sleep(0.2)
    with connection, context.wrap_socket(connection, server_side=True) as secure:
        while secure.recv(4096):
            secure.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def test_a_handshake_is_in_the_response_time(
    k6: K6Runs,
    server: Server,
    slow_handshakes: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    given = plan(server, [rate(20, "2s")]) | {"slo": ["p95 < 150ms"], "events": None}
    phase = found(k6.start("churn", given | {"target": {"url": slow_handshakes}}))
    assert phase.failures == 0
    assert percentile(phase, 0.5) > 0.2
    assert phase.slow == {"p95 < 150ms": phase.requests}
    assert phase.http_req_duration_seconds is not None
    assert phase.http_req_duration_seconds.p50 is not None
    assert phase.http_req_duration_seconds.p50 < 0.1
    assert parts(phase)["tls"] > 0.2
    assert sum(parts(phase).values()) == pytest.approx(phase.latency_mean_seconds)


LOADS = [
    ("steady", [rate(100, "2s")]),
    ("steady", [rate(100, "2s", jitter="500ms")]),
    ("ramp", [rate(150, "2s")]),
    ("steady", [users(4, "2s")]),
    ("steady", [users(20, "2s", period="200ms")]),
    ("spike", [users(50, "2s")]),
]


@pytest.mark.parametrize(("script", "phases"), LOADS)
def test_the_parts_of_the_mean_add_up(
    k6: K6Runs, server: Server, script: str, phases: list[dict[str, Any]]
) -> None:
    server.delays = cycle([0.0, 0.03])
    phase = found(k6.start(script, plan(server, phases)))
    assert (phase.failures, phase.dropped) == (0, 0)
    assert sum(parts(phase).values()) == pytest.approx(phase.latency_mean_seconds, abs=2e-5)
    assert 0 <= parts(phase)["lateness"] < PATIENCE_SECONDS
    assert parts(phase)["waiting"] > 0.01
    # The slowest is the last rank, whatever failed.
    assert phase.latency is not None
    assert phase.latency.count == phase.requests
    assert phase.latency.seconds[-1] >= 0.03


def test_times_are_finer_than_20_us(k6: K6Runs, server: Server) -> None:
    given = plan(server, [users(1, "2s")])
    run = k6.run("steady", given)
    values = {p["data"]["value"] for p in run.samples if p["metric"] == "response_time"}
    # Rounded to 20 us, fewer would differ.
    assert len(values) > 0.95 * run.count("response_time{scenario:p}")
    due = k6.run("steady", plan(server, [rate(100, "2s")]))
    late = [p["data"]["value"] for p in due.samples if p["metric"] == "response_time_due"]
    assert len({round(ms, 2) for ms in late}) > 100


def stalled(run: Running, after: float, seconds: float) -> PhaseSummary:
    """What k6 says of a phase in which it stood still."""
    time.sleep(after)
    os.kill(run.pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(run.pid, signal.SIGCONT)
    return found(run)


# With users to spare, and with none: all wait for answers that take a second.
STALLED = [
    ("steady", [rate(50, "4s")], 0.0),
    ("steady", [rate(50, "4s", most_users=40)], 1.0),
    ("steady", [rate(50, "4s", jitter="200ms")], 0.0),
    ("ramp", [rate(100, "4s")], 0.0),
    ("steady", [users(5, "4s")], 0.01),
    ("steady", [users(10, "4s")], 1.0),
    ("steady", [users(20, "4s", period="400ms")], 0.0),
]


@pytest.mark.parametrize(("script", "phases", "delay"), STALLED)
def test_a_driver_that_stands_still_says_so(
    k6: K6Runs, server: Server, script: str, phases: list[dict[str, Any]], delay: float
) -> None:
    server.delay_seconds = delay
    phase = stalled(k6.start(script, plan(server, phases, timeout="9s")), 2.5, 0.6)
    # 0.6 of 4 s: of 15 % of the time, evenly from 0.6 s down.
    assert phase.lateness is not None
    assert phase.lateness.max == pytest.approx(0.6, abs=PATIENCE_SECONDS)
    assert phase.lateness.p99 == pytest.approx(0.56, abs=PATIENCE_SECONDS)
    assert phase.lateness.p50 < 0.05


def test_who_was_due_while_the_driver_stood_still_waited(k6: K6Runs, server: Server) -> None:
    given = plan(server, [rate(50, "4s", most_users=200)]) | {"slo": ["p95 < 300ms"]}
    phase = stalled(k6.start("steady", given), 1.5, 0.6)
    if phase.dropped:
        pytest.skip("k6 had no user ready for all that were due at once")
    # Evenly from 0.6 s down: 30 requests, half of them later than 0.3 s.
    assert phase.slow["p95 < 300ms"] == pytest.approx(15, abs=5)
    assert phase.latency is not None
    assert phase.latency.seconds[-1] == pytest.approx(0.6, abs=PATIENCE_SECONDS)
    assert parts(phase)["lateness"] == pytest.approx(0.6 * 0.15 / 2, abs=0.03)


def test_a_drop_makes_no_later_request_late(k6: K6Runs, server: Server) -> None:
    # The first twenty keep all users busy for a second; 50 a second go on meanwhile.
    server.delays = chain(repeat(1.0, 20), repeat(0.0))
    given = plan(server, [rate(50, "4s", most_users=20)]) | {"slo": ["p95 < 300ms"]}
    phase = found(k6.start("steady", given))
    assert phase.dropped == pytest.approx(30, abs=5)
    assert phase.slow == {"p95 < 300ms": pytest.approx(20, abs=3)}
    assert percentile(phase, 0.5) < PATIENCE_SECONDS
    assert parts(phase)["lateness"] is None


def test_answers_after_the_phase_are_not_in_its_window(k6: K6Runs, server: Server) -> None:
    server.delay_seconds = 0.5
    phase = found(k6.start("steady", plan(server, [rate(20, "2s", most_users=40)])))
    assert phase.completed == phase.requests == pytest.approx(40, abs=1)
    assert phase.completed_in_window == pytest.approx(30, abs=2)
