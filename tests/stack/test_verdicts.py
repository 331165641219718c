"""Runs that something other than the target's plain answers makes look good, on real servers: each
verdict is the one that a user who waited would give."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import psutil
import pytest

from spikelab.errors import EXIT_INCONCLUSIVE, EXIT_SLO_MISSED
from tests.support.http_server import Server
from tests.support.lab import Lab
from tests.support.tls_server import slow_handshakes

RunPlan = Callable[..., dict[str, Any]]


@pytest.fixture
def run_plan(lab: Lab, tmp_path: Path) -> RunPlan:
    """Runs one phase at a rate on a url: the record. `exit_code`: that of ./lab."""

    def run(
        url: str,
        slo: str,
        exit_code: int,
        *,
        script: str = "steady",
        rate: int = 50,
        duration: str = "10s",
        environment: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        plan = {
            "name": "verdict",
            "about": "One phase",
            "driver": "k6",
            "script": {"k6": script},
            "target": {"url": url},
            "request": {"path": "/", "timeout": "30s"},
            "phases": [
                {"name": "load", "kind": "rate", "value": rate, "duration": duration}
                # None is dropped in a freeze.
                | {"most_users": 10 * rate}
            ],
            "slo": [slo],
        }
        file = tmp_path / "verdict.yaml"
        file.write_text(json.dumps(plan))
        return lab.with_settings(**(environment or {})).run(str(file), exit_code=exit_code)

    return run


@pytest.fixture
def server() -> Iterator[Server]:
    instance = Server()
    yield instance
    instance.close()


@pytest.mark.timed
def test_a_slow_handshake_and_a_freeze_are_waited_for(run_plan: RunPlan, tmp_path: Path) -> None:
    with slow_handshakes(tmp_path, 0.2, frozen_seconds=(4.0, 9.0)) as url:
        record = run_plan(
            url,
            "p50 < 150ms",
            EXIT_SLO_MISSED,
            script="churn",
            rate=20,
            duration="20s",
            environment={"SSL_CERT_FILE": str(tmp_path / "cert.pem")},
        )
    step = record["steps"][0]
    assert step["failures"] == 0
    assert step["latency_seconds"]["p50"] > 0.2
    # A quarter of the requests were due while it was frozen, and waited for its end.
    assert step["latency_seconds"]["p90"] > 2
    assert step["http_req_duration_seconds"]["p50"] < 0.15


@pytest.mark.timed
def test_a_driver_that_stood_still_decides_nothing(
    run_plan: RunPlan, server: Server, lab: Lab
) -> None:
    Thread(target=_stop_k6_once, args=(lab, server, 0.9), daemon=True).start()
    record = run_plan(server.url, "p95 < 250ms", EXIT_INCONCLUSIVE, rate=100, duration="20s")
    step = record["steps"][0]
    # k6 may begin one more in the last moment.
    assert step["requests"] in (2000, 2001)
    assert step["lateness"]["p99"] > 0.3
    assert "late" in step["why"]


def _stop_k6_once(lab: Lab, server: Server, seconds: float) -> None:
    while len(server.requests) < 500:
        time.sleep(0.05)
    for pid in _k6(lab):
        os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    for pid in _k6(lab):
        os.kill(pid, signal.SIGCONT)


def _k6(lab: Lab) -> list[int]:
    return [pid for pid in lab.processes() if psutil.Process(pid).name() == "k6"]


@pytest.mark.timed
def test_a_redirect_is_no_good_answer_and_is_not_followed(
    run_plan: RunPlan, server: Server
) -> None:
    elsewhere = Server()
    server.status, server.delay_seconds, server.location = 302, 0.5, elsewhere.url + "/"
    record = run_plan(server.url, "p95 < 200ms", EXIT_SLO_MISSED)
    elsewhere.close()
    assert record["steps"][0]["failures"] == record["steps"][0]["requests"] > 400
    assert elsewhere.requests == []
