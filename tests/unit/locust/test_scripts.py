"""The locustfiles, run by the real Locust against a real HTTP server."""

import itertools
import json
import re
import signal
import threading
import time
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.locust_scripts import LONGEST_SECONDS, free_port, plan_file, run, start

pytestmark = pytest.mark.timed


class Site:
    """A target, and an InfluxDB that takes everything; counts requests by method and path."""

    def __init__(self) -> None:
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                path = self.path.split("?")[0]
                if path == "/write":
                    site.points += body.decode().split("\n")
                    return self.answer(204, b"")
                site.requests[f"{self.command} {path} {len(body)}"] += 1
                site.authorizations.add(self.headers.get("Authorization"))
                if path == "/api/v1/auth/token":
                    return self.answer(site.token_status, b'{"access_token": "made-here"}')
                if path == "/slow":
                    time.sleep(2.5)
                if path == "/wrong":
                    return self.answer(503, b"no healthy upstream")
                return self.answer(200, b"hello")

            do_GET = do_POST = handle_any  # noqa: N815

            def answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                if status != 204:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        self.requests: Counter[str] = Counter()
        self.authorizations: set[str | None] = set()
        self.points: list[str] = []
        self.token_status = 200
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def site() -> Iterator[Site]:
    one = Site()
    threading.Thread(target=one.server.serve_forever, daemon=True).start()
    yield one
    one.server.shutdown()
    one.server.server_close()


PHASES: list[dict[str, Any]] = [
    {"name": "ramp", "kind": "users", "value": 10, "duration": "3s"}
    | {"ramp_up": "2s", "period": "250ms"},
    {"name": "rate", "kind": "rate", "value": 40, "start": "3s", "duration": "2s"}
    | {"body_bytes": 7},
]


@pytest.mark.parametrize("processes", [[], ["--processes=2"]])
def test_the_phases_of_a_plan_run_and_are_summarised(
    tmp_path: Path, site: Site, processes: list[str]
) -> None:
    plan = plan_file(tmp_path, site, PHASES, "/hello")
    code, said = run(site, "hello.py", processes, LAB_PLAN=plan)
    assert code == 0, said
    summary = json.loads((tmp_path / "summary.json").read_text())
    ramp, rate = summary["phases"]
    # What the driver counts is what the server saw, and each phase has its own kind of request.
    assert site.requests == {"GET /hello 0": ramp["requests"], "POST /hello 7": rate["requests"]}
    assert 0.7 < ramp["start_spread_seconds"] < 2.5
    # Ten users: 4 requests a second of each, from its start on.
    assert 60 <= ramp["requests"] <= 100
    # Two seconds of 40 a second; a busy machine may end the phase late, or begin it so and make up.
    seconds = (rate["ended"] - rate["started"]) / 1000
    assert 1.8 < seconds < 4
    assert rate["requests"] == pytest.approx(40 * seconds, abs=20)
    assert rate["start_spread_seconds"] is None
    for phase in (ramp, rate):
        assert phase["started_ms"] <= phase["started"] < phase["ended"]
        assert (phase["dropped"], phase["failures"], phase["bodies"]) == (0, 0, [])
    assert summary["events_pending"] == 0
    # The event that dashboards draw is the one that the summary names.
    closed = [point.rsplit(" ", 1)[1] for point in site.points if 'state="closed"' in point]
    assert set(closed) == {str(ramp["started_ms"]), str(rate["started_ms"])}


def test_a_missed_objective_is_99_and_shows_what_was_answered(tmp_path: Path, site: Site) -> None:
    phases = [{"name": "one", "kind": "users", "value": 2, "duration": "1s", "period": "100ms"}]
    plan = plan_file(tmp_path, site, phases, "/wrong")
    code, said = run(site, "hello.py", ["--processes=1"], LAB_PLAN=plan)
    assert code == 99, said
    phase = json.loads((tmp_path / "summary.json").read_text())["phases"][0]
    assert phase["errors"]["http_5xx"] == phase["failures"] == phase["requests"] > 5
    assert phase["bodies"] == ["503: no healthy upstream"]


def test_a_phase_s_own_limits_count_slow_and_late_answers(tmp_path: Path, site: Site) -> None:
    slo = ["p50 <= 500ms", "p95 < 1200ms"]
    phases = [{"name": "one", "kind": "rate", "value": 30, "duration": "1s", "slo": slo}]
    plan = plan_file(tmp_path, site, phases, "/slow")
    code, said = run(site, "hello.py", ["--processes=1"], LAB_PLAN=plan)
    assert code == 99, said
    assert re.findall("missed in (.*) [(]", said) == [f"one: {text}" for text in slo]
    phase = json.loads((tmp_path / "summary.json").read_text())["phases"][0]
    assert phase["requests"] == phase["completed"] > 5
    assert phase["slow"] == dict.fromkeys(slo, phase["requests"])
    # All came after the phase's end and the looser limit.
    assert phase["late_answers"] == phase["requests"]
    assert phase["completed_in_window"] == 0


BY_HAND = ["--users=5", "--spawn-rate=5", "--run-time=3s"]


def test_authorization_mints_a_token_once_and_tells_nobody(site: Site) -> None:
    code, said = run(site, "authz.py", BY_HAND)
    assert code == 0, said
    assert site.requests["POST /api/v1/auth/token 0"] == 1
    # 1.6 s between a user's requests.
    assert site.requests["GET /api/v1/authz/ping 0"] == pytest.approx(5 * 3 / 1.6, abs=4)
    assert site.authorizations == {None, "Bearer made-here"}
    assert "made-here" not in said


def test_authorization_takes_the_token_of_the_environment(site: Site) -> None:
    code, said = run(site, "authz.py", BY_HAND, TOKEN="given")
    assert code == 0, said
    assert site.authorizations == {"Bearer given"}
    assert "given" not in said


@pytest.mark.parametrize(("content", "reason"), [(None, "No such file"), (b"\xff", "is no text")])
def test_a_token_s_file_that_cannot_be_read_ends_the_run(
    tmp_path: Path, site: Site, content: bytes | None, reason: str
) -> None:
    file = tmp_path / "token"
    if content:
        file.write_bytes(content)
    code, said = run(site, "authz.py", BY_HAND, TOKEN_FILE=str(file))
    assert code == 1, said
    assert len(re.findall(f"no token: TOKEN_FILE={file}: {reason}", said)) == 1
    assert "Traceback" not in said
    assert not site.requests


@pytest.mark.parametrize("processes", [[], ["--processes=1"]])
def test_a_token_that_cannot_be_had_ends_the_run(site: Site, processes: list[str]) -> None:
    site.token_status = 404
    code, said = run(site, "authz.py", ["--users=50", *BY_HAND[1:], *processes])
    assert code == 1, said
    assert len(re.findall("no token from POST .* 404", said)) == 1
    assert "Traceback" not in said
    assert set(site.requests) == {"POST /api/v1/auth/token 0"}


def test_a_second_run_from_the_web_page_has_series_and_events_of_its_own(
    tmp_path: Path, site: Site
) -> None:
    """Each testid's series counts what that run sent, also in the worker, which has to be told."""
    page, log, sent = free_port(), tmp_path / "locust.log", []
    with log.open("w") as out:
        web = start(
            site,
            "hello.py",
            [
                f"--web-port={page}",
                "--web-host=127.0.0.1",
                "--processes=1",
                "--otel",
                "--stop-timeout=1",
            ],
            out,
            OTEL_METRICS_EXPORTER="console",
            OTEL_METRIC_EXPORT_INTERVAL="300",
            TESTID="mine",
        )
    try:
        for users in (5, 10):
            wait_for(page)
            before = site.requests["GET /hello 0"]
            swarm(page, users)
            time.sleep(3)
            ask(page, "stop")
            sent.append(site.requests["GET /hello 0"] - before)
    finally:
        web.send_signal(signal.SIGTERM)
        web.wait(timeout=LONGEST_SECONDS)
    said = log.read_text()
    assert web.returncode == 0, said
    assert min(sent) > 5
    for histogram in ("locust.client.duration", "locust.response.time"):
        assert counts(said, histogram) == {"mine": sent[0], "mine-2": sent[1]}
    testids = {match[1] for point in site.points if (match := re.search("testid=([^,]+)", point))}
    assert testids == {"mine", "mine-2"}


BUSY_START = """
import gevent
from locust import events

@events.init.add_listener
def wait(**_):
    gevent.sleep(0.3)
"""


def test_every_worker_has_the_testid_of_its_master_from_its_first_request_on(
    tmp_path: Path, site: Site
) -> None:
    """Real workers beside a real master, as on several machines; one comes while users start, and
    is not ready to listen when it is first spoken to."""
    busy = tmp_path / "busy.py"
    busy.write_text(BUSY_START)
    page, port = free_port(), free_port()
    series = {"OTEL_METRICS_EXPORTER": "console", "OTEL_METRIC_EXPORT_INTERVAL": "300"}
    roles = {
        "master": ["--master", f"--web-port={page}", "--web-host=127.0.0.1", "--stop-timeout=1"],
        "early": ["--worker"],
        "late": ["--worker"],
    }
    processes, sent = {}, []

    def begin(name: str) -> None:
        with (tmp_path / name).open("w") as out:
            processes[name] = start(
                site, "hello.py", [*roles[name], "--otel"], out, port=port, before=[busy], **series
            )

    try:
        begin("master")
        begin("early")
        wait_for(page)
        for number, workers in ((1, 1), (2, 2)):
            wait_for(page, workers)
            before = site.requests["GET /hello 0"]
            swarm(page, 12, spawn_rate=3)
            time.sleep(1)
            if number == 1:
                begin("late")
            time.sleep(5)
            ask(page, "stop")
            sent.append(site.requests["GET /hello 0"] - before)
    finally:
        processes["master"].send_signal(signal.SIGTERM)
        for process in processes.values():
            process.wait(timeout=LONGEST_SECONDS)
    logs = {name: (tmp_path / name).read_text() for name in roles}
    testid = re.findall("testid (.*)", logs["master"])[0]
    by_worker = [counts(logs[name]) for name in ("early", "late")]
    for own in by_worker:
        assert own.keys() == {testid, f"{testid}-2"}, own
    assert sent == [sum(own[each] for own in by_worker) for each in (testid, f"{testid}-2")]


def ask(page: int, path: str, form: dict[str, object] | None = None) -> None:
    data = urllib.parse.urlencode(form or {}).encode()
    urllib.request.urlopen(f"http://127.0.0.1:{page}/{path}", data, timeout=5).close()


def swarm(page: int, users: int, spawn_rate: int | None = None) -> None:
    form = {"user_count": users, "spawn_rate": spawn_rate or users, "throughput": 4}
    ask(page, "swarm", form)


def wait_for(page: int, workers: int = 1) -> None:
    """Until the page is up and its workers are there, or are there again."""
    until = time.monotonic() + LONGEST_SECONDS
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{page}/stats/requests") as answer:
                if len(json.load(answer)["workers"]) >= workers:
                    return
        except OSError:
            pass
        time.sleep(0.2)
    raise TimeoutError("the web page did not come up")


def counts(said: str, histogram: str = "locust.client.duration") -> dict[str, int]:
    """The last count of requests by testid, from what OpenTelemetry's console exporter printed."""
    found = {}
    decoder = json.JSONDecoder()
    for start_of_one in re.finditer(r'^\{\s*"resource_metrics"', said, re.MULTILINE):
        data, _ = decoder.raw_decode(said, start_of_one.start())
        for resource in data["resource_metrics"]:
            testid = resource["resource"]["attributes"]["testid"]
            for metric in itertools.chain(*(each["metrics"] for each in resource["scope_metrics"])):
                if metric["name"] == histogram:
                    found[testid] = sum(p["count"] for p in metric["data"]["data_points"])
    return found
