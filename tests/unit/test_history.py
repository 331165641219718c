"""The points that a run, its phases and a verdict become, and how long raw samples stay."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from spikelab import paths
from spikelab.drivers.base import PhaseSummary
from spikelab.drivers.locust import Locust
from spikelab.errors import LabError, UsageError
from spikelab.history import (
    OWED,
    phase_line,
    rebuild,
    require_age,
    run_line,
    step_line,
    write_confidence,
    write_history,
    write_owed,
    write_phases,
)
from spikelab.plans.model import Phase
from spikelab.results.comparison import ComparisonRecord, Result, Side
from spikelab.results.run import Errors, Latency, RunRecord, Step, TargetRecord
from spikelab.series import Series
from spikelab.settings import load_target_declaration
from spikelab.stores import InfluxDB
from tests.support.http_server import Server
from tests.support.records import START, plain_record, plain_step

START_MS = 1795222923000


def step(begin: float, length: float, p99: float | None, **changes: Any) -> Step:
    figures = {
        "started": START + timedelta(seconds=begin),
        "ended": START + timedelta(seconds=begin + length),
        "achieved_rate": 99.0,
        "goodput": 98.0,
        "requests": 1000,
        "completed": 990,
        "dropped": 1,
        "failures": 20,
        "errors": Errors(request_timeout=10, http_5xx=10),
        "latency_seconds": Latency(p50=0.1, p99=p99),
        "verdict": "fail",
    }
    return plain_step(**{**figures, **changes})


def record(*steps: Step, **changes: Any) -> RunRecord:
    target = TargetRecord(
        url="http://127.0.0.1:8080",
        settings=load_target_declaration().resolve({"TOMCAT_MAX_THREADS": 500}),
        effective={},
        runtime="host",
    )
    return plain_record(*steps, **{"verdict": "fail", "target": target, **changes})


def fields(written_line: str) -> dict[str, str]:
    """Of a line whose texts hold no comma and no blank."""
    return dict(pair.split("=", 1) for pair in written_line.split(" ")[1].split(","))


def test_a_run_adds_up_its_steps_and_takes_the_highest_of_each_percentile() -> None:
    run = fields(run_line(record(step(0, 10, 0.3), step(40, 10, 0.2), labels={"a": "b"})))
    assert (run["requests"], run["failures"], run["dropped"]) == ("2000i", "40i", "2i")
    # Of all that were due: a dropped request got no good answer.
    assert float(run["success"]) == 1960 / 2002
    # The pause of 30 s between the steps is no time under load.
    assert float(run["achieved_rate"]) == pytest.approx(1980 / 20)
    assert (run["latency_p50_seconds"], run["latency_p99_seconds"]) == ("0.1", "0.3")
    assert "latency_p95_seconds" not in run
    assert (run["state"], run["verdict"]) == ('"valid"', '"fail"')
    assert (run["settings"], run["labels"]) == ('"TOMCAT_MAX_THREADS=500"', '"a=b"')
    assert (run["started_ms"], run["ended_ms"]) == (f"{START_MS}i", f"{START_MS + 60_000}i")


def test_steps_at_the_same_time_count_their_seconds_once() -> None:
    run = fields(run_line(record(step(0, 10, None), step(5, 10, None))))
    assert float(run["achieved_rate"]) == pytest.approx(1980 / 15)


def test_an_aborted_run_has_reasons_and_no_figures() -> None:
    point = run_line(record(valid=False, verdict="inconclusive", reasons=['he said "stop"\nnow']))
    assert 'state="aborted"' in point
    assert 'reasons="he said \\"stop\\" now"' in point
    assert "requests=" not in point


def test_a_spoiled_run_is_invalid_and_keeps_its_figures() -> None:
    run = fields(run_line(record(step(0, 10, None), valid=False, reasons=["restarted"])))
    assert (run["state"], run["requests"]) == ('"invalid"', "1000i")


def test_a_step_is_a_point_at_its_start_and_a_curve_with_those_of_its_variant() -> None:
    mine = step(40, 10, 0.2, variant="wide")
    point = step_line(record(mine), mine)
    assert point.startswith(
        "run_steps,driver=k6,plan=mine,step=steady,testid=20261121T010203Z-mine-0a1b,variant=wide "
    )
    assert point.endswith(f" {START_MS + 40_000}")
    assert 'curve="mine wide"' in point
    assert "errors_request_timeout=10i,errors_http_5xx=10i" in point


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("two\nlines", r"step=two\ lines,"),
        ("a, b=c", r"step=a\,\ b\=c,"),
        ("cut\\", "step=cut,"),
        ("\n", ""),
    ],
)
def test_a_step_of_any_name_is_a_tag_that_influxdb_can_read(name: str, tag: str) -> None:
    mine = step(0, 5, 1.0, name=name, phase="high")
    point = step_line(record(mine), mine)
    assert point.startswith(f"run_steps,driver=k6,plan=mine,{tag}testid=")
    assert "\n" not in point


def nobody() -> InfluxDB:
    return InfluxDB("http://127.0.0.1:1")


@pytest.fixture
def influxdb(server: Server) -> InfluxDB:
    """Takes every write into `server.points`, and knows no phase."""
    server.text = '{"results": [{"statement_id": 0}]}'
    return InfluxDB(server.url)


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    return tmp_path


PHASE = Phase(name="steady", kind="rate", value=1000, start="0s", duration="2s")
BEGUN = datetime(2026, 11, 21, 1, 2, 3, 250_000, tzinfo=UTC)
BEGUN_MS = 1795222923250


def measured(**changes: Any) -> RunRecord:
    """A run of Locust with one phase, with the files that it leaves in its folder."""
    run = record(step(0, 2, 0.3), **{"driver": "locust", **changes})
    run.save()
    plan = {"phases": [PHASE.model_dump(mode="json")]}
    (run.folder / "plan.json").write_text(json.dumps(plan))
    figures = {
        "name": "steady",
        "started_ms": BEGUN_MS,
        "started": BEGUN_MS,
        "ended": BEGUN_MS + 2100,
        "errors": {},
        "bodies": [],
        "latency": {"count": 1, "ranks": [0.0, 1.0], "seconds": [0.1, 0.1]},
        **dict.fromkeys(("requests", "completed", "failures", "dropped"), 1),
        **dict.fromkeys(("latency_mean_seconds", "start_spread_seconds", "late_answers")),
        **dict.fromkeys(("latency_parts_seconds", "lateness", "completed_in_window")),
        "slow": {},
        "response_bytes_mean": None,
    }
    (run.folder / Locust.summary_file).write_text(json.dumps({"phases": [figures]}))
    return run


def events(points: Sequence[str]) -> list[str]:
    return [point for point in points if point.startswith("events,")]


def verdict_on(run: RunRecord, verdict: str = "worse", created: int = 0) -> ComparisonRecord:
    """A comparison whose B is this run."""
    latency = Result(
        metric="p95",
        about="",
        unit="s",
        better="lower",
        place={},
        primary=True,
        pairs=[],
        ratio=1.1,
        low=1.08,
        high=1.12,
        verdict=verdict,
    )
    comparison = ComparisonRecord(
        comparison=f"compare-{created}",
        created=START + timedelta(seconds=created),
        plan="mine",
        primary="p95",
        margin=0.05,
        a=Side(name="a", plan="mine", runs=[]),
        b=Side(name="b", plan="mine", runs=[run.testid]),
        interleaved=True,
        results=[latency],
        verdict=verdict,
        summary="",
    )
    comparison.save()
    return comparison


def test_a_phase_is_the_point_that_its_driver_wrote() -> None:
    happened = PhaseSummary.model_construct(begun=BEGUN, ended=BEGUN + timedelta(seconds=9))
    assert phase_line(record(), PHASE, happened, spike=False) == (
        "events,driver=k6,phase=steady,testid=20261121T010203Z-mine-0a1b "
        'title="steady",text="1000 rate",tags="k6,rate",state="closed",'
        "timeEnd=1795222925250i 1795222923250"
    )
    assert "timeEnd=1795222932250i" in phase_line(record(), PHASE, happened, spike=True)


def test_phases_come_from_the_files_of_the_run(
    results: Path, influxdb: InfluxDB, server: Server
) -> None:
    assert write_phases(measured(), influxdb) == 0
    (point,) = server.points
    assert point.endswith(f'state="closed",timeEnd={BEGUN_MS + 2000}i {BEGUN_MS}')


@pytest.mark.parametrize("driver", ["k6", "locust"])
def test_phases_of_a_run_before_schema_2_come_from_its_files(
    driver: str, results: Path, influxdb: InfluxDB, server: Server
) -> None:
    run = measured(driver=driver)
    data = {**run.to_json(), "schema": 1}
    del data["latency_basis"]
    old = RunRecord.model_validate(data)
    summary = {
        "k6": {"setup_data": {"started_ms": BEGUN_MS}, "metrics": {}},
        "locust": {"phases": [{"name": "steady", "started_ms": BEGUN_MS}]},
    }
    (run.folder / f"{driver}-summary.json").write_text(json.dumps(summary[driver]))
    assert write_phases(old, influxdb) == 0
    (point,) = server.points
    assert point.endswith(f'state="closed",timeEnd={BEGUN_MS + 2000}i {BEGUN_MS}')


def test_what_cannot_be_written_is_owed_until_it_can(
    results: Path, influxdb: InfluxDB, server: Server
) -> None:
    run = measured()
    assert write_phases(run, nobody()) == 1
    write_owed(nobody())
    assert (run.folder / OWED).exists()
    write_owed(influxdb)
    assert not (run.folder / OWED).exists()
    assert [point.split(",")[0] for point in server.points] == ["runs", "run_steps", "events"]


def test_phases_that_could_not_be_marked_aborted_wait_for_the_next_command(results: Path) -> None:
    """Whoever cut the run off may have cut off InfluxDB as well."""
    run = plain_record(ended=BEGUN + timedelta(seconds=1))
    run.save()
    for influxdb in (None, nobody()):
        write_history(run, influxdb)
        assert (run.folder / OWED).exists()


def test_phases_of_an_aborted_run_end_with_it(
    results: Path, influxdb: InfluxDB, server: Server
) -> None:
    run = measured(steps=[], ended=BEGUN + timedelta(seconds=1))
    rows = {
        "columns": ["time", "driver", "phase", "testid", "timeEnd"],
        "values": [[BEGUN_MS, "locust", "steady", run.testid, BEGUN_MS + 2000]],
    }
    server.text = json.dumps({"results": [{"series": [rows]}]})
    write_history(run, influxdb)
    (point,) = events(server.points)
    assert point.endswith(f'state="aborted",timeEnd={BEGUN_MS + 1000}i {BEGUN_MS}')


def test_a_verdict_is_a_field_more_and_owed_where_influxdb_is_away(
    results: Path, influxdb: InfluxDB, server: Server
) -> None:
    run = measured()
    comparison = verdict_on(run)
    write_confidence(comparison, influxdb)
    (point,) = server.points
    assert point.split(" ")[0] == run_line(run).split(" ")[0]
    assert point.endswith(f' confidence="worse (×1.10, 1.08–1.12, 0 pairs)" {START_MS}')
    assert not (run.folder / OWED).exists()

    write_confidence(comparison, nobody())
    assert (run.folder / OWED).exists()
    write_owed(influxdb)
    assert 'confidence="worse (' in server.points[1]


@pytest.mark.parametrize("died", [False, True])
def test_a_store_that_was_left_out_is_no_warning(
    results: Path, capsys: pytest.CaptureFixture[str], died: bool
) -> None:
    one = measured()
    write_history(one, nobody() if died else None)
    assert (one.folder / OWED).exists()
    assert ("InfluxDB took no write" in capsys.readouterr().err) == died


def test_a_rebuild_writes_the_same_points_again_with_the_last_verdict(
    results: Path, influxdb: InfluxDB, server: Server
) -> None:
    run = measured()
    (run.folder / OWED).touch()
    verdict_on(run, "better", created=2)
    verdict_on(run, "worse", created=1)
    measured(testid="20261121T010203Z-read-0a1b", labels={"imported": "k6"})
    measured(testid="20261121T010203Z-runs-0a1b", ended=None)
    assert rebuild(influxdb) == (1, 3)
    assert not (run.folder / OWED).exists()
    first = list(server.points)
    assert 'confidence="better (' in first[0]
    assert rebuild(influxdb) == (1, 3)
    assert server.points == first * 2


def test_a_rebuild_without_influxdb_is_refused(results: Path) -> None:
    measured()
    with pytest.raises(LabError, match="does not answer"):
        rebuild(nobody())


@pytest.mark.parametrize("text", ["0", "12h", "30d", "4w", "15250w", "99999d"])
def test_ages_that_influxdb_takes(text: str) -> None:
    assert require_age(text) == text


@pytest.mark.parametrize("text", ["15251w", "99999w"])
def test_an_age_of_more_nanoseconds_than_influxdb_counts_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"^INFLUXDB_RAW_RETENTION={text}: is more than the 292 y"):
        require_age(text)


@pytest.mark.parametrize("text", ["", "0d", "-1d", "30 days", "100000h", "1y"])
def test_an_invalid_age_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="must be an age"):
        require_age(text)


def test_seconds_without_a_figure_are_no_points(
    results: Path, influxdb: InfluxDB, server: Server
) -> None:
    run = measured()
    # As after a Prometheus that was away, and from a lab that kept fewer signals.
    points = {"good_rate": [5.0, None, 7.0], "users": [1.0, None, None]}
    Series(testid=run.testid, begun=START, step_seconds=1, points=points).save()
    write_history(run, influxdb)
    series = [point for point in server.points if point.startswith("run_series,")]
    assert [point.rsplit(" ", 2)[1:] for point in series] == [
        ["good_rate=5.0,users=1.0", "0"],
        ["good_rate=7.0", "2000"],
    ]
    assert not (run.folder / OWED).exists()


def test_a_run_of_an_unknown_driver_has_its_points_without_phases(
    results: Path, influxdb: InfluxDB, server: Server
) -> None:
    measured(driver="gatling")
    assert rebuild(influxdb) == (1, 2)
    assert events(server.points) == []
