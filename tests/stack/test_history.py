"""Finished runs in InfluxDB, on the real stack."""

import signal
from typing import Any

import pytest

from spikelab import series as series_module
from spikelab import signals
from spikelab.health import answers
from spikelab.history import series_lines
from spikelab.results.run import RunRecord
from spikelab.series import RATES as LOAD_RATES
from spikelab.series import load_series, read_series
from tests.stack.processes import process_of
from tests.support.lab import Lab, in_state, wait_until

SERVICE_SECONDS = 2
RATES = [rate.name for rate in LOAD_RATES]


def points(lab: Lab, measurement: str, testid: str) -> list[dict[str, Any]]:
    return lab.influxdb.query(f"SELECT * FROM {measurement} WHERE testid = '{testid}'")


@pytest.fixture(scope="module")
def spike(lab: Lab) -> dict[str, Any]:
    """300 users on 200 threads, two seconds each."""
    load = ["--set", "users=300", "--set", f"request.path=/hello?ms={1000 * SERVICE_SECONDS}"]
    return lab.run_unjudged("tomcat-spike", *load, "--label", 'note=a "b"')


def test_a_run_is_a_point_with_the_record_s_figures(lab: Lab, spike: dict[str, Any]) -> None:
    (run,) = points(lab, "runs", spike["testid"])
    (step,) = spike["steps"]
    assert (run["plan"], run["driver"]) == ("tomcat-spike", "k6")
    assert run["verdict"] == spike["verdict"]
    assert (run["requests"], run["failures"], run["success"]) == (300, 0, 1)
    for quantile in ("p50", "p95", "p99", "max"):
        assert run[f"latency_{quantile}_seconds"] == step["latency_seconds"][quantile]
    assert run["achieved_rate"] == pytest.approx(step["achieved_rate"], rel=0.001)
    assert (run["state"], run["labels"]) == ("valid", 'note=a "b"')
    assert run["settings"] == "defaults"
    (stored,) = points(lab, "run_steps", spike["testid"])
    assert (stored["step"], stored["drain_seconds"]) == ("spike", step["drain_seconds"])


def test_the_series_begins_at_0_and_adds_up_to_the_requests(
    lab: Lab, spike: dict[str, Any]
) -> None:
    series = points(lab, "run_series", spike["testid"])
    assert [point["time"] for point in series] == [second * 1000 for second in range(len(series))]
    assert sum(point["good_rate"] for point in series) == pytest.approx(300)
    assert max(point["users"] or 0 for point in series) == 300
    # Two waves: the second one waited for the first. Of the seconds' p99 the greatest is not below
    # the run's, nor above its slowest answer; buckets are 9 % wide.
    slowest = max(p["latency_p99_seconds"] or 0 for p in series)
    latency = spike["steps"][0]["latency_seconds"]
    # Some begin a little after the first wave does.
    assert latency["p99"] > 1.5 * SERVICE_SECONDS
    assert 0.91 * latency["p99"] < slowest < 1.09 * latency["max"]


def test_a_longer_run_is_thinned_out_and_still_adds_up(
    lab: Lab, spike: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = RunRecord.model_validate(spike)
    # Read again: on a busy machine Prometheus may have more by now than at the run's end.
    whole = read_series(record, lab.prometheus)
    assert whole
    monkeypatch.setattr(series_module, "MOST_POINTS", len(whole) - 1)
    drawn = read_series(record, lab.prometheus)
    assert drawn
    thinned = series_lines(record, drawn)
    rates = [float(line.split("good_rate=")[1].split(",")[0]) for line in thinned]
    assert len(thinned) == -(-len(whole) // 2)
    assert sum(rates) * 2 == pytest.approx(300)


def test_a_prometheus_that_has_just_started_misses_no_second(lab: Lab) -> None:
    process_of(lab, "prometheus").kill()
    wait_until(lambda: answers(f"{lab.prometheus.url}/-/ready"), 30, "it is back")
    testid = lab.run_unjudged("steady", "--set", "rate=50", "--set", "duration=3s")["testid"]
    kept = load_series(lab.home / "results" / testid)
    assert kept
    assert None not in kept.of(signals.CONNECTIONS_ESTABLISHED)
    assert None not in kept.of(signals.GOOD_RATE)


def test_the_series_kept_at_a_run_s_end_is_the_one_read_later(
    lab: Lab, spike: dict[str, Any]
) -> None:
    assert_kept_whole(lab, spike)


def assert_kept_whole(lab: Lab, run: dict[str, Any]) -> None:
    """What was kept at its end is what is read later."""
    kept = load_series(lab.home / "results" / run["testid"])
    later = read_series(RunRecord.model_validate(run), lab.prometheus)
    assert kept and later
    assert {name: kept.points[name] for name in RATES} == {n: later.points[n] for n in RATES}


def test_locust_s_runs_are_in_the_history(lab: Lab) -> None:
    sets = ["--set", "rate=50", "--set", "duration=6s"]
    record = lab.run_unjudged("steady", "--driver", "locust", *sets)
    assert_kept_whole(lab, record)
    testid = record["testid"]
    (run,) = points(lab, "runs", testid)
    assert (run["driver"], run["requests"]) == ("locust", pytest.approx(300, abs=10))
    series = points(lab, "run_series", testid)
    offered = [point["offered_rate"] for point in series]
    assert {100, 50} <= set(offered)
    # The warm-up of 5 s at 100/s is in the series, as it is on every dashboard.
    assert sum(p["good_rate"] for p in series) == pytest.approx(500 + run["requests"], abs=20)


def test_an_aborted_run_is_in_the_history_with_its_reason_and_what_it_did(lab: Lab) -> None:
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


def test_history_is_written_again_from_results(lab: Lab, spike: dict[str, Any]) -> None:
    measurements = ("runs", "run_steps", "run_series", "events")

    def stored() -> dict[str, list[dict[str, Any]]]:
        return {name: points(lab, name, spike["testid"]) for name in measurements}

    before = stored()
    assert all(before.values())
    for name in measurements:
        lab.influxdb.query(f"DROP MEASUREMENT {name}")
    for _ in range(2):
        result = lab("history", "rebuild")
        assert result.returncode == 0, result.stderr
        assert f"of {len(lab.records())} runs to InfluxDB" in result.stderr
        assert stored() == before


def test_a_rebuild_without_an_answer_of_influxdb_is_one_line(lab: Lab) -> None:
    influxd = process_of(lab, "influxd")
    influxd.suspend()
    try:
        result = lab("history", "rebuild")
    finally:
        influxd.resume()
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"lab: InfluxDB at {lab.influxdb.url} does not answer")
