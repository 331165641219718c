"""The points that a run, its phases and a verdict become, and how long raw samples stay."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from spikelab import paths
from spikelab.errors import UsageError
from spikelab.history import (
    Event,
    mark_aborted,
    require_age,
    run_line,
    step_line,
    write_confidence,
    write_events,
    write_history,
    write_kept,
)
from spikelab.results.run import Errors, Latency, RunRecord, Step, TargetRecord
from spikelab.settings import load_target_declaration
from spikelab.stores import InfluxDB
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


def test_a_verdict_is_a_field_more_and_kept_where_influxdb_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    run = record(step(0, 10, None, variant="wide"))
    run.save()
    write_confidence([run], "worse (×1.10, 1.08–1.12, 6 pairs)", InfluxDB("http://127.0.0.1:1"))
    kept = (run.folder / "confidence.lp").read_text()
    point = run_line(run)
    assert kept.split(" ")[0] == point.split(" ")[0]
    assert kept.endswith(f' confidence="worse (×1.10, 1.08–1.12, 6 pairs)" {START_MS}\n')
    assert point.endswith(f" {START_MS}")


@pytest.mark.parametrize("died", [False, True])
def test_a_store_that_was_left_out_is_no_warning(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    died: bool,
) -> None:
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    one = record(step(0, 10, 0.3))
    (tmp_path / one.testid).mkdir()
    write_history(one, InfluxDB("http://127.0.0.1:1") if died else None)
    assert (tmp_path / one.testid / "history.lp").read_text().startswith("runs,")
    assert ("InfluxDB took no write" in capsys.readouterr().err) == died


BEGUN = datetime(2026, 11, 21, 1, 2, 3, 250_000, tzinfo=UTC)


EVENT = Event(
    testid="20261121T010203Z-mine-0a1b",
    driver="k6",
    phase="steady",
    text="1,000 rate",
    kind="rate",
    begun=BEGUN,
    ended=BEGUN + timedelta(seconds=2),
    state="closed",
)


def test_a_phase_is_the_point_that_its_driver_wrote() -> None:
    assert EVENT.line() == (
        "events,driver=k6,phase=steady,testid=20261121T010203Z-mine-0a1b "
        'title="steady",text="1,000 rate",tags="k6,rate",state="closed",'
        "timeEnd=1795222925250i 1795222923250"
    )


def test_what_cannot_be_written_is_kept_until_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    (tmp_path / EVENT.testid).mkdir()
    nobody = InfluxDB("http://127.0.0.1:9")
    assert write_events(nobody, [EVENT]) == 1
    write_kept(nobody)
    assert (tmp_path / EVENT.testid / "events.lp").read_text() == EVENT.line() + "\n"


def test_phases_that_could_not_be_marked_aborted_wait_for_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever cut the run off may have cut off InfluxDB as well."""
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    record = plain_record(ended=EVENT.ended)
    record.save()
    for influxdb in (None, InfluxDB("http://127.0.0.1:9")):
        mark_aborted(influxdb, record, EVENT.ended)
        assert (record.folder / "events.open").exists()


@pytest.mark.parametrize("text", ["0", "12h", "30d", "4w", "15250w", "99999d"])
def test_an_age(text: str) -> None:
    assert require_age(text) == text


@pytest.mark.parametrize("text", ["15251w", "99999w"])
def test_an_age_of_more_nanoseconds_than_influxdb_counts(text: str) -> None:
    with pytest.raises(UsageError, match=f"^INFLUXDB_RAW_RETENTION={text}: is more than the 292 y"):
        require_age(text)


@pytest.mark.parametrize("text", ["", "0d", "-1d", "30 days", "100000h", "1y"])
def test_what_is_no_age(text: str) -> None:
    with pytest.raises(UsageError, match="must be an age"):
        require_age(text)
