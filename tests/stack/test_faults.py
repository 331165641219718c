"""What goes wrong while load is on: the run says what is true, and nothing is lost that it had."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from spikelab.errors import LabError
from spikelab.health import client
from spikelab.history import OWED
from tests.reliability import saw_on_host, seconds_until
from tests.stack.processes import freeze, give_way, kill_and_hold, process_of
from tests.support.faults import meanwhile, phase, plan, said
from tests.support.lab import Lab, in_state


@pytest.mark.alone
def test_a_starved_generator_decides_nothing(lab: Lab, tmp_path: Path) -> None:
    spin = "import time\nend = time.time() + 15\nwhile time.time() < end: pass"
    hogs: list[subprocess.Popen[bytes]] = []

    def starve() -> None:
        give_way(process_of(lab, "k6"))
        hogs.extend(subprocess.Popen([sys.executable, "-c", spin]) for _ in range(8))

    starved = meanwhile(lab, starve)
    phases = [
        phase("before", 3),
        phase("during", 10, 1000),
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
    waiting = f"{during['generator']['waiting']:.1f} of its threads wait for a core"
    saw_on_host("starved of CPU", "the driver", waiting, record)


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
    phases = [phase("before", 3), phase("during", 25)]
    result = lab("run", plan(tmp_path, phases=phases), "--driver", driver)
    killed.result()
    assert result.returncode == 1, result.stderr
    record = lab.records()[-1]
    assert (record["valid"], record["verdict"]) == (False, "inconclusive")
    assert "killed" in record["reasons"][0]
    assert sorted(in_state(lab, record["testid"])) == ["aborted", "closed"]
    events = lab.influxdb.query(f"SELECT * FROM events WHERE testid = '{record['testid']}'")
    cut = next(event for event in events if event["state"] == "aborted")
    assert cut["timeEnd"] - cut["time"] == pytest.approx(3500, abs=1500)
    marked = f"{said(record)}; its phase is marked aborted"
    saw_on_host(f"killed (SIGKILL) in a run ({driver})", "the driver", marked, record)


@pytest.mark.parametrize("driver", ["k6", "locust"])
def test_influxdb_away_for_20_s_loses_no_request_and_no_event(
    lab: Lab, tmp_path: Path, driver: str
) -> None:
    phases = [
        phase("before", 2, 50),
        phase("during", 10, 50),
        phase("away", 8, 50),
        phase("back", 8, 50),
    ]
    away = meanwhile(lab, lambda: freeze(lab, "influxd", 20))
    sinks = ["--sink", "influxdb"] if driver == "k6" else []
    record = lab.run(plan(tmp_path, phases=phases), "--driver", driver, *sinks)
    away.result()
    for step in record["steps"]:
        assert step["started_rate"] == pytest.approx(50, rel=0.02)
        assert (step["failures"], step["dropped"]) == (0, 0)
        assert step["latency_seconds"]["max"] < 1
    events = lab.influxdb.query(f"SELECT * FROM events WHERE testid = '{record['testid']}'")
    assert {event["phase"]: event["state"] for event in events} == dict.fromkeys(
        ["before", "during", "away", "back"], "closed"
    )
    whole = f"no request late, every phase there; {said(record) or 'nothing lost'}"
    saw_on_host(f"frozen for 20 s ({driver})", "InfluxDB", whole, record)


@pytest.mark.parametrize("program", ["prometheus", "java"])
def test_a_killed_program_is_started_again(lab: Lab, tmp_path: Path, program: str) -> None:
    took: list[float] = []

    def kill() -> None:
        time.sleep(1)
        killed = process_of(lab, program)
        killed.kill()
        moment = time.time()
        took.append(seconds_until(lambda: serves(lab, program, moment), 60, f"{program} serves"))

    killed = meanwhile(lab, kill)
    phases = [phase("before", 2), phase("during", 10)]
    target = program == "java"
    record = lab.run(plan(tmp_path, phases=phases), exit_code=1 if target else 0)
    killed.result()
    if target:
        assert (record["valid"], record["verdict"]) == (False, "inconclusive")
        assert "the target died or was restarted" in record["reasons"][0]
    else:
        assert (record["valid"], record["verdict"]) == (True, "pass")
        assert_drawn_without_its_gap(lab, record)
    component = "the target" if target else "Prometheus"
    saw_on_host("killed (SIGKILL) in a run", component, said(record), record, took[0])


def serves(lab: Lab, program: str, since_seconds: float) -> bool:
    """Whether the target is ready, or Prometheus has recorded something after that moment."""
    try:
        if program == "prometheus":
            return (lab.prometheus.value("max(timestamp(up))") or 0) > since_seconds
        ready = lab.url("TARGET_MANAGEMENT_PORT") + "/actuator/health/readiness"
        return client.get(ready, timeout=2).is_success
    except (LabError, httpx.HTTPError):
        return False


def assert_drawn_without_its_gap(lab: Lab, record: dict[str, Any]) -> None:
    """Where Prometheus recorded nothing there is no value, and the record says so."""
    assert any("Prometheus recorded nothing" in warning for warning in record["warnings"])
    series = json.loads((lab.home / "results" / record["testid"] / "series.json").read_text())
    holes = [values.count(None) for name, values in series["points"].items() if "rate" in name]
    assert holes and min(holes) > 0


def test_an_influxdb_that_died_costs_raw_samples_that_the_record_counts(
    lab: Lab, tmp_path: Path
) -> None:
    away = meanwhile(lab, lambda: kill_and_hold(lab, 10))
    phases = [phase("before", 2, 50), phase("during", 18, 50)]
    record = lab.run(plan(tmp_path, phases=phases), "--sink", "influxdb")
    away.result()
    during = record["steps"][1]
    stored = lab.influxdb.query(
        f"SELECT count(\"value\") FROM http_reqs WHERE testid = '{record['testid']}' "
        "AND scenario = 'during'"
    )[0]["count"]
    assert during["requests"] == pytest.approx(900, abs=5)
    assert during["raw_samples_missing"] == during["requests"] - stored > 0
    assert any("InfluxDB lacks" in warning for warning in record["warnings"])
    assert set(in_state(lab, record["testid"])) == {"closed"}
    saw_on_host("killed (SIGKILL), back after 10 s", "InfluxDB", said(record), record)


def test_events_that_could_not_be_written_wait_for_the_next_command(
    lab: Lab, tmp_path: Path
) -> None:
    """InfluxDB is away at the end of the run, when everything is written once more, and the run
    is added to its history."""
    stopped: list[psutil.Process] = []

    def stop() -> None:
        process = process_of(lab, "influxd")
        process.suspend()
        stopped.append(process)

    away = meanwhile(lab, stop, phase="before")
    try:
        phases = [phase("before", 4, 50), phase("during", 2, 50)]
        result = lab("run", plan(tmp_path, phases=phases))
        away.result()
    finally:
        for process in stopped:
            process.resume()
    assert result.returncode == 0, result.stderr
    record = lab.records()[-1]
    assert any("are kept" in warning for warning in record["warnings"])
    assert "this run's history is kept" in result.stderr
    folder = lab.home / "results" / record["testid"]
    assert (folder / OWED).exists()
    assert lab("runs").returncode == 0
    assert not (folder / OWED).exists()
    assert in_state(lab, record["testid"]) == ["closed", "closed"]
    of_the_run = f"WHERE testid = '{record['testid']}'"
    (run,) = lab.influxdb.query(f"SELECT * FROM runs {of_the_run}")
    series = lab.influxdb.query(f"SELECT * FROM run_series {of_the_run}")
    assert sum(point["good_rate"] for point in series) == pytest.approx(run["requests"])
    saw_on_host("away at the end of a run", "InfluxDB", said(record), record)
