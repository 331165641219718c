"""k6 and Locust as equals: one plan, one set of series, the same figures from both."""

import json
import math
import os
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from spikelab import paths
from spikelab.stack.programs import locust_program
from tests.support.lab import Lab, errors_in_record, errors_in_series, wait_until

RATE, SECONDS = 200, 10
PLAN: dict[str, Any] = {
    "name": "same",
    "about": "one rate, on an answer of 20 ms, by either driver",
    "script": {"k6": "steady", "locust": "hello"},
    "target": {"settings": {"TOMCAT_MAX_THREADS": 200}},
    "request": {"path": "/hello?ms=20", "timeout": "3s"},
    "phases": [{"name": "steady", "kind": "rate", "value": RATE, "duration": f"{SECONDS}s"}],
    "slo": ["success >= 95%", "p95 < 3s"],
}


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("drivers") / "same.yaml"
    path.write_text(yaml.safe_dump(PLAN))
    return path


def total(lab: Lab, testid: str, series: str = "loadtest:requests:total") -> float:
    return lab.prometheus.value(f'max_over_time(sum({series}{{testid="{testid}"}})[5m:1s])') or 0


def mean_rate(lab: Lab, record: dict[str, Any]) -> float:
    """The integral of the normalised rate over the run, divided by the phase's length."""
    expression = f'sum(sum_over_time(loadtest:requests:rate{{testid="{record["testid"]}"}}[5m]))'
    return (lab.prometheus.value(expression) or 0) / SECONDS


def histogram_p99(lab: Lab, testid: str) -> float:
    latency = f'sum(loadtest:latency_seconds:total{{testid="{testid}"}})'
    # The last sample of the run; its series ends some seconds after it.
    value = lab.prometheus.value(f"histogram_quantile(0.99, last_over_time(({latency})[5m:1s]))")
    assert value is not None
    return value


def by_driver(lab: Lab, plan_file: Path, driver: str) -> dict[str, Any]:
    result = lab("run", str(plan_file), "--driver", driver)
    found = lab.records()[-1]
    # A machine busy with other tests may leave a driver short of CPU: then it decides nothing.
    said = result.stdout + result.stderr
    assert result.returncode == (3 if found["generator"]["limited"] else 0), said
    return found


@pytest.fixture(scope="module")
def k6_record(lab: Lab, plan_file: Path) -> dict[str, Any]:
    return by_driver(lab, plan_file, "k6")


@pytest.fixture(scope="module")
def locust_record(lab: Lab, plan_file: Path) -> dict[str, Any]:
    return by_driver(lab, plan_file, "locust")


@pytest.fixture(params=["k6", "locust"])
def record(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.getfixturevalue(f"{request.param}_record")
    assert found["driver"] == request.param
    return found


@pytest.mark.parametrize("driver", ["k6", "locust"])
def test_a_wrong_status_is_the_same_class_on_both_drivers(
    lab: Lab, tmp_path: Path, driver: str
) -> None:
    path = tmp_path / "missing.yaml"
    phases = [{"name": "steady", "kind": "rate", "value": 20, "duration": "3s"}]
    path.write_text(yaml.safe_dump({**PLAN, "request": {"path": "/missing"}, "phases": phases}))
    record = lab.run(str(path), "--driver", driver, exit_code=99)
    assert errors_in_record(record) == {"http_4xx": record["steps"][0]["requests"]}
    assert errors_in_series(lab, record["testid"]) == errors_in_record(record)


def test_figures_of_a_live_run_reach_prometheus(lab: Lab, record: dict[str, Any]) -> None:
    seen = {
        name: lab.prometheus.value(f'max(max_over_time({name}{{testid="{record["testid"]}"}}[5m]))')
        for name in (
            "lab_offered_rate",
            "lab_slo_ok",
            "lab_events_pending",
            "lab_driver_cpu_cores",
            "lab_driver_limited",
        )
    }
    cores = seen.pop("lab_driver_cpu_cores")
    assert cores is not None
    assert 0 < cores < (os.cpu_count() or 1)
    # Which of both depends on what else the machine does.
    assert seen.pop("lab_driver_limited") in {0, 1}
    assert seen == {"lab_offered_rate": RATE, "lab_slo_ok": 1, "lab_events_pending": 0}


def test_live_objectives_are_of_the_judged_phases(lab: Lab, tmp_path: Path) -> None:
    rate = {"kind": "rate", "value": 20, "duration": "4s"}
    phases = [
        # /hello takes no POST: every request fails.
        {"name": "warm-up", **rate, "body_bytes": 10, "judged": False},
        {"name": "good", **rate},
        {"name": "strict", **rate, "slo": ["p50 < 10ms"]},
    ]
    path = tmp_path / "phases.yaml"
    path.write_text(yaml.safe_dump({**PLAN, "phases": phases}))
    record = lab.run_unjudged(str(path))
    steps = {step["name"]: step for step in record["steps"]}
    assert steps["strict"]["latency_seconds"]["p50"] > 0.01
    first = datetime.fromisoformat(steps["good"]["started"])
    last = datetime.fromisoformat(steps["strict"]["ended"]) + timedelta(seconds=1)
    said = lab.prometheus.values(
        f'lab_slo_ok{{testid="{record["testid"]}"}}',
        int(first.timestamp()),
        int(last.timestamp()),
        1,
    )
    # Undecided while there are few requests of a phase.
    decided = [value for value in said.values() if value != 0.5]
    assert list(dict.fromkeys(decided)) == [1, 0], said


def test_one_plan_runs_on_both_drivers_and_the_dashboard_agrees(
    lab: Lab, record: dict[str, Any]
) -> None:
    step = record["steps"][0]
    assert record["verdict"] == ("inconclusive" if step["generator"]["limited"] else "pass")
    assert step["offered_rate"] == RATE
    assert step["started_rate"] == pytest.approx(RATE, rel=0.02)
    assert mean_rate(lab, record) == pytest.approx(RATE, rel=0.02)
    assert mean_rate(lab, record) * SECONDS == pytest.approx(step["requests"], rel=0.02)
    assert (step["failures"], step["dropped"]) == (0, 0)
    assert step["drain_seconds"] < 1
    events = lab.influxdb.query(f"SELECT * FROM events WHERE testid = '{record['testid']}'")
    assert [(e["driver"], e["phase"], e["state"]) for e in events] == [
        (record["driver"], "steady", "closed")
    ]
    assert events[0]["timeEnd"] - events[0]["time"] == pytest.approx(SECONDS * 1000, abs=1000)


def test_both_drivers_measure_one_server_alike(
    k6_record: dict[str, Any], locust_record: dict[str, Any]
) -> None:
    """An answer of 20 ms, over connections that are open already."""
    k6, locust = (each["steps"][0] for each in (k6_record, locust_record))
    if k6["generator"]["limited"] or locust["generator"]["limited"]:
        pytest.skip("the machine is too busy to compare them")
    for step in (k6, locust):
        parts = {name: spent or 0 for name, spent in step["latency_parts_seconds"].items()}
        assert sum(parts.values()) == pytest.approx(step["latency_mean_seconds"], abs=1e-6)
        assert parts["waiting"] >= 0.02
        assert step["latency_seconds"]["p50"] >= 0.02
        assert step["lateness"]["p50"] < 0.005
        assert step["completed_rate"] == pytest.approx(RATE, rel=0.02)
    p50 = [step["latency_seconds"]["p50"] for step in (k6, locust)]
    assert p50[0] == pytest.approx(p50[1], abs=0.004)


def test_the_histogram_s_p99_is_that_of_k6_s_own_summary(
    lab: Lab, k6_record: dict[str, Any]
) -> None:
    exact = k6_record["steps"][0]["http_req_duration_seconds"]["p99"]
    assert histogram_p99(lab, k6_record["testid"]) == pytest.approx(exact, rel=0.09)


@pytest.fixture
def by_hand(lab: Lab, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Locust without the lab, with every request's time in a file."""
    testid, raw = f"by-hand-{os.getpid()}-{time.time_ns()}", tmp_path / "raw.txt"
    files = f"{paths.LOCUST / 'hello.py'},{Path(__file__).with_name('raw_times.py')}"
    command = [str(locust_program()), "-f", files, "--headless", "--only-summary", "--otel"]
    load = ["-u", "50", "-r", "50", "-t", "8s", "--throughput", "4", "--ms", "20"]
    subprocess.run(
        [*command, *load, "-H", lab.url("TARGET_PORT")],
        env={
            **lab.env,
            "TESTID": testid,
            "RAW_TIMES": str(raw),
            "PROMETHEUS_URL": lab.url("PROMETHEUS_PORT"),
            "INFLUXDB_URL": lab.url("INFLUXDB_PORT"),
        },
        capture_output=True,
        check=True,
        timeout=120,
    )
    yield testid, raw


def test_locust_by_hand_counts_and_times_as_its_raw_times_do(
    lab: Lab, by_hand: tuple[str, Path]
) -> None:
    testid, raw = by_hand
    times = sorted(map(float, raw.read_text().split()))
    assert len(times) > 1000
    exact = times[math.ceil(0.99 * len(times)) - 1]
    wait_until(lambda: total(lab, testid) == len(times), 30, "every request is in Prometheus")
    assert histogram_p99(lab, testid) == pytest.approx(exact, rel=0.09)
    events = lab.influxdb.query(f"SELECT * FROM events WHERE testid = '{testid}'")
    assert [(e["driver"], e["state"]) for e in events] == [("locust", "closed")]


def test_a_run_by_hand_beside_one_of_the_lab_is_told_apart(lab: Lab, plan_file: Path) -> None:
    testid = f"beside-{time.time_ns()}"
    load = lab.start(
        "run", str(plan_file), "--driver", "locust", "--json", str(lab.home / "r.json")
    )
    wait_until(lambda: _live(lab, "locust"), 90, "Locust's load is on")
    options = ["--quiet", "--tag", f"testid={testid}", "--out", "experimental-prometheus-rw"]
    by_hand = subprocess.run(
        [str(paths.BIN / "k6"), "run", *options, str(paths.K6 / "steady.js")],
        env={
            **lab.env,
            "RATE": "50",
            "DURATION": "5s",
            "REQUEST_PATH": "/hello?ms=20",
            "BASE_URL": lab.url("TARGET_PORT"),
            "INFLUXDB_URL": lab.url("INFLUXDB_PORT"),
            "K6_PROMETHEUS_RW_SERVER_URL": lab.url("PROMETHEUS_PORT") + "/api/v1/write",
            "K6_PROMETHEUS_RW_PUSH_INTERVAL": "1s",
            "K6_FEATURES": "native-histograms",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert by_hand.returncode == 0, by_hand.stdout + by_hand.stderr
    # 3: on a busy machine the driver may be short of CPU.
    assert load.wait(timeout=120) in {0, 3}, load.stderr and load.stderr.read()
    record = json.loads((lab.home / "r.json").read_text())
    requests = record["steps"][0]["requests"]
    wait_until(lambda: total(lab, record["testid"]) == requests, 30, "all are in Prometheus")
    assert total(lab, testid) == pytest.approx(250, abs=1)
    for run, driver in ((testid, "k6"), (record["testid"], "locust")):
        seen = lab.prometheus.query(
            f'count by (driver) (last_over_time(loadtest:requests:total{{testid="{run}"}}[5m]))'
        )
        assert list(seen) == [f"driver={driver}"]
        events = lab.influxdb.query(f"SELECT * FROM events WHERE testid = '{run}'")
        assert {event["driver"] for event in events} == {driver}


def _live(lab: Lab, driver: str) -> bool:
    return bool(lab.prometheus.value(f'sum(loadtest:requests:rate{{driver="{driver}"}} > 0)'))
