"""What goes wrong while load is on: the run says what is true, and nothing is lost that it had."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from tests.stack.conftest import Lab, in_state, wait_until


def plan(tmp_path: Path, **changes: Any) -> str:
    """A rate of 100/s on a fast answer for 20 s, or what of it is changed."""
    data = {
        "name": "fault",
        "about": "a rate while something goes wrong",
        "script": {"k6": "steady", "locust": "hello"},
        "request": {"path": "/hello?ms=5", "timeout": "3s"},
        "phases": [
            {"name": "before", "kind": "rate", "value": 100, "duration": "5s"},
            {"name": "during", "kind": "rate", "value": 100, "duration": "25s"},
        ],
        "slo": ["success >= 99%", "p99 < 1s"],
        **changes,
    }
    path = tmp_path / "fault.yaml"
    path.write_text(yaml.safe_dump(data))
    return str(path)


def process_of(lab: Lab, name: str) -> psutil.Process:
    """The one process of this lab whose program has this name."""
    found = [psutil.Process(pid) for pid in lab.processes()]
    return next(each for each in found if _program(each) == name)


def _program(process: psutil.Process) -> str:
    try:
        return Path((process.cmdline() or [""])[0]).name
    except psutil.Error:
        return ""


def meanwhile(lab: Lab, work: Callable[[], None], phase: str = "during") -> "Future[None]":
    """Does something once the phase has begun. Await the result: a fault that never happened must
    fail the test."""
    known = len(lab.records())

    def wait_and_work() -> None:
        wait_until(lambda: len(lab.records()) > known, 90, "the run has begun")
        testid = lab.records()[-1]["testid"]
        wait_until(lambda: _begun(lab, testid, phase), 60, f"{phase} has begun")
        work()

    return ThreadPoolExecutor(1).submit(wait_and_work)


def _begun(lab: Lab, testid: str, phase: str) -> bool:
    rows = lab.influxdb.query(f"SELECT * FROM events WHERE testid = '{testid}'")
    return phase in [row["phase"] for row in rows]


def freeze(lab: Lab, name: str, seconds: float) -> None:
    time.sleep(1)  # the phase before has its last answers
    process = process_of(lab, name)
    process.suspend()
    time.sleep(seconds)
    process.resume()


def test_a_frozen_target_shows_in_an_open_loop(lab: Lab, tmp_path: Path) -> None:
    frozen = meanwhile(lab, lambda: freeze(lab, "java", 5))
    record = lab.run(plan(tmp_path), exit_code=99)
    frozen.result()
    before, during = record["steps"]
    assert before["verdict"] == "pass"
    # Of 25 s 5 are lost: 200 users (2 s of the rate) wait, the others are dropped.
    assert during["dropped"] > 100
    assert during["errors"]["request_timeout"] > 50
    assert during["latency_with_failures_seconds"]["p99"] is None
    assert during["generator"]["limited"] is False
    assert during["verdict"] == "fail"


def test_the_same_freeze_hides_in_a_closed_loop(lab: Lab, tmp_path: Path) -> None:
    users = [
        {"name": name, "kind": "users", "value": 10, "period": "100ms", "duration": duration}
        for name, duration in (("before", "5s"), ("during", "25s"))
    ]
    frozen = meanwhile(lab, lambda: freeze(lab, "java", 5))
    record = lab.run(plan(tmp_path, phases=users, slo=["p99 < 1s"]))
    frozen.result()
    during = record["steps"][1]
    # Ten users sent nothing for five seconds: 20 requests or so of 2,000 were late.
    assert during["failures"] <= 20
    assert during["latency_seconds"]["p99"] < 1
    assert record["verdict"] == "pass"


def test_a_starved_generator_decides_nothing(lab: Lab, tmp_path: Path) -> None:
    spin = "import time\nend = time.time() + 25\nwhile time.time() < end: pass"
    hogs: list[subprocess.Popen[bytes]] = []

    def starve() -> None:
        _give_way(process_of(lab, "k6"))
        hogs.extend(subprocess.Popen([sys.executable, "-c", spin]) for _ in range(8))

    starved = meanwhile(lab, starve)
    phases = [
        {"name": "before", "kind": "rate", "value": 100, "duration": "5s"},
        {"name": "during", "kind": "rate", "value": 1000, "duration": "20s"},
    ]
    result = lab("run", plan(tmp_path, phases=phases))
    starved.result()
    for hog in hogs:
        hog.kill()
        hog.wait()
    record = lab.records()[-1]
    during = record["steps"][1]
    assert during["generator"]["limited"] is True
    assert during["verdict"] == "inconclusive"
    assert result.returncode == 3, result.stderr


def _give_way(process: psutil.Process) -> None:
    """The lowest priority for its threads, and for its session where the kernel groups by it."""
    for thread in process.threads():
        os.setpriority(os.PRIO_PROCESS, thread.id, 19)
    with contextlib.suppress(OSError):
        Path(f"/proc/{process.pid}/autogroup").write_text("19")


@pytest.mark.parametrize("driver", ["k6", "locust"])
def test_a_killed_driver_leaves_a_closed_region_and_an_invalid_record(
    lab: Lab, tmp_path: Path, driver: str
) -> None:
    def kill() -> None:
        time.sleep(3)
        record = lab.records()[-1]
        for pid in lab.processes():
            process = psutil.Process(pid)
            if record["testid"] in process.environ().get("LAB_PLAN", ""):
                process.kill()

    killed = meanwhile(lab, kill)
    result = lab("run", plan(tmp_path), "--driver", driver)
    killed.result()
    assert result.returncode == 1, result.stderr
    record = lab.records()[-1]
    assert (record["valid"], record["verdict"]) == (False, "inconclusive")
    assert "killed" in record["reasons"][0]
    assert sorted(in_state(lab, record["testid"])) == ["aborted", "closed"]
    events = lab.influxdb.query(f"SELECT * FROM events WHERE testid = '{record['testid']}'")
    cut = next(event for event in events if event["state"] == "aborted")
    assert cut["timeEnd"] - cut["time"] == pytest.approx(3500, abs=1500)


@pytest.mark.parametrize("driver", ["k6", "locust"])
def test_influxdb_away_for_20_s_loses_no_request_and_no_event(
    lab: Lab, tmp_path: Path, driver: str
) -> None:
    phases = [
        {"name": "before", "kind": "rate", "value": 100, "duration": "5s"},
        {"name": "during", "kind": "rate", "value": 100, "duration": "10s"},
        {"name": "away", "kind": "rate", "value": 100, "duration": "8s"},
        {"name": "back", "kind": "rate", "value": 100, "duration": "15s"},
    ]
    away = meanwhile(lab, lambda: freeze(lab, "influxd", 20))
    sinks = ["--sink", "influxdb"] if driver == "k6" else []
    record = lab.run(plan(tmp_path, phases=phases), "--driver", driver, *sinks)
    away.result()
    for step in record["steps"]:
        assert step["started_rate"] == pytest.approx(100, rel=0.02)
        assert (step["failures"], step["dropped"]) == (0, 0)
        assert step["latency_seconds"]["max"] < 1
    events = lab.influxdb.query(f"SELECT * FROM events WHERE testid = '{record['testid']}'")
    assert {event["phase"]: event["state"] for event in events} == dict.fromkeys(
        ["before", "during", "away", "back"], "closed"
    )


def test_an_influxdb_that_died_costs_raw_samples_that_the_record_counts(
    lab: Lab, tmp_path: Path
) -> None:
    away = meanwhile(lab, lambda: _die(lab, 10))
    record = lab.run(plan(tmp_path), "--sink", "influxdb")
    away.result()
    during = record["steps"][1]
    stored = lab.influxdb.query(
        f"SELECT count(\"value\") FROM http_reqs WHERE testid = '{record['testid']}' "
        "AND scenario = 'during'"
    )[0]["count"]
    assert during["requests"] == pytest.approx(2500, abs=5)
    assert during["raw_samples_missing"] == during["requests"] - stored > 0
    assert any("InfluxDB lacks" in warning for warning in record["warnings"])
    assert set(in_state(lab, record["testid"])) == {"closed"}


def _die(lab: Lab, seconds: float) -> None:
    """Kills InfluxDB, and holds up the one that supervisord starts, before it listens."""
    killed = process_of(lab, "influxd")
    killed.kill()
    wait_until(lambda: _others(lab, killed), 10, "supervisord starts InfluxDB again")
    new = _others(lab, killed)[0]
    new.suspend()
    try:
        time.sleep(seconds)
    finally:
        new.resume()


def _others(lab: Lab, killed: psutil.Process) -> list[psutil.Process]:
    """InfluxDB's processes but the killed one."""
    found = [psutil.Process(pid) for pid in lab.processes() if pid != killed.pid]
    return [each for each in found if _program(each) == "influxd"]


def test_events_that_could_not_be_written_wait_for_the_next_command(
    lab: Lab, tmp_path: Path
) -> None:
    """InfluxDB is away at the end of the run, when everything is written once more."""
    stopped: list[psutil.Process] = []

    def stop() -> None:
        process = process_of(lab, "influxd")
        process.suspend()
        stopped.append(process)

    away = meanwhile(lab, stop, phase="before")
    try:
        result = lab("run", plan(tmp_path))
        away.result()
    finally:
        for process in stopped:
            process.resume()
    assert result.returncode == 0, result.stderr
    record = lab.records()[-1]
    assert any("are kept" in warning for warning in record["warnings"])
    kept = lab.home / "results" / record["testid"] / "events.lp"
    assert kept.exists()
    assert lab("runs").returncode == 0
    assert not kept.exists()
    assert in_state(lab, record["testid"]) == ["closed", "closed"]
