"""Finished runs in InfluxDB, on the real stack."""

import signal
from typing import Any

import pytest

from spikelab import series
from spikelab.history import series_lines
from spikelab.record import RunRecord
from tests.stack.conftest import Lab, in_state, wait_until
from tests.stack.test_faults import meanwhile, plan, process_of


def points(lab: Lab, measurement: str, testid: str) -> list[dict[str, Any]]:
    return lab.influxdb.query(f"SELECT * FROM {measurement} WHERE testid = '{testid}'")


@pytest.fixture(scope="module")
def spike(lab: Lab) -> dict[str, Any]:
    """300 users on 200 threads, two seconds each."""
    delay = ["--target-set", "TARGET_HELLO_DELAY_MS=2000"]
    return lab.run("tomcat-spike", "--set", "users=300", "--label", 'note=a "b"', *delay)


def test_a_run_is_a_point_with_the_record_s_figures(lab: Lab, spike: dict[str, Any]) -> None:
    (run,) = points(lab, "runs", spike["testid"])
    (step,) = spike["steps"]
    assert (run["plan"], run["driver"], run["verdict"]) == ("tomcat-spike", "k6", "pass")
    assert (run["requests"], run["failures"], run["success"]) == (300, 0, 1)
    for quantile in ("p50", "p95", "p99", "max"):
        assert run[f"latency_{quantile}_seconds"] == step["latency_seconds"][quantile]
    assert run["achieved_rate"] == pytest.approx(step["achieved_rate"], rel=0.001)
    assert (run["state"], run["labels"]) == ("valid", 'note=a "b"')
    assert run["settings"] == "TARGET_HELLO_DELAY_MS=2000"
    (stored,) = points(lab, "run_steps", spike["testid"])
    assert (stored["step"], stored["drain_seconds"]) == ("spike", step["drain_seconds"])


def test_the_series_begins_at_0_and_adds_up_to_the_requests(
    lab: Lab, spike: dict[str, Any]
) -> None:
    series = points(lab, "run_series", spike["testid"])
    assert [point["time"] for point in series] == [second * 1000 for second in range(len(series))]
    assert sum(point["good_rate"] for point in series) == pytest.approx(300)
    assert max(point["users"] or 0 for point in series) == 300
    # Two waves: the second one waited for the first.
    slowest = [p["latency_p99_seconds"] for p in series if p["latency_p99_seconds"] is not None]
    assert max(slowest) == pytest.approx(4, rel=0.1)


def test_a_longer_run_is_thinned_out_and_still_adds_up(
    lab: Lab, spike: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = len(points(lab, "run_series", spike["testid"]))
    monkeypatch.setattr(series, "MOST_POINTS", whole - 1)
    record = RunRecord.model_validate(spike)
    drawn = series.read_series(record, lab.prometheus)
    assert drawn
    thinned = series_lines(record, drawn)
    rates = [float(line.split("good_rate=")[1].split(",")[0]) for line in thinned]
    assert len(thinned) == -(-whole // 2)
    assert sum(rates) * 2 == pytest.approx(300)


def test_locust_s_runs_are_in_it_as_well(lab: Lab) -> None:
    sets = ["--set", "rate=50", "--set", "duration=6s"]
    testid = lab.run("steady", "--driver", "locust", *sets)["testid"]
    (run,) = points(lab, "runs", testid)
    assert (run["driver"], run["requests"]) == ("locust", pytest.approx(300, abs=10))
    series = points(lab, "run_series", testid)
    offered = [point["offered_rate"] for point in series]
    assert {100, 50} <= set(offered)
    # The warm-up of 5 s at 100/s is in the series, as it is on every dashboard.
    assert sum(p["good_rate"] for p in series) == pytest.approx(500 + run["requests"], abs=20)


def test_an_aborted_run_is_in_it_with_its_reason_and_what_it_did(lab: Lab) -> None:
    known = len(lab.records())
    process = lab.start("run", "steady", "--set", "rate=50")
    wait_until(lambda: len(lab.records()) > known, 60, "the run has begun")
    testid = lab.records()[-1]["testid"]
    wait_until(lambda: in_state(lab, testid) != [], 30, "its load has begun")
    wait_until(
        lambda: lab.prometheus.value(f'sum(loadtest:requests:total{{testid="{testid}"}}) > 100'),
        30,
        "it has answers",
    )
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    (run,) = points(lab, "runs", testid)
    assert (run["state"], run["reasons"]) == ("aborted", "interrupted by the user")
    assert sum(point["good_rate"] for point in points(lab, "run_series", testid)) > 100


def test_history_that_could_not_be_written_waits_for_the_next_command(
    lab: Lab, tmp_path: Any
) -> None:
    away = meanwhile(lab, lambda: process_of(lab, "influxd").suspend(), phase="before")
    try:
        result = lab("run", plan(tmp_path))
        away.result()
    finally:
        process_of(lab, "influxd").resume()
    assert result.returncode == 0, result.stderr
    assert "this run's history is kept" in result.stderr
    testid = lab.records()[-1]["testid"]
    kept = lab.home / "results" / testid / "history.lp"
    assert kept.exists()
    assert lab("runs").returncode == 0
    assert not kept.exists()
    (run,) = points(lab, "runs", testid)
    series = points(lab, "run_series", testid)
    assert sum(point["good_rate"] for point in series) == pytest.approx(run["requests"])
