"""Whether a run came as predicted: each figure, how many were measured, and what is noticed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import predictions
from spikelab import paths
from spikelab.prediction.check import checks, in_short, predict, rate_text, within
from spikelab.prediction.model import Server, Spike
from spikelab.results.run import RunRecord, TargetRecord
from tests.support.records import plain_record, plain_step

TOLD = predictions.Setting(Server(20, 8192, 100, 20), Spike(100, 2, 60))
QUIET = predictions.Noise(pace=1.002, spread_seconds=0.1, half_open=False)
GRID = sorted((paths.ROOT / "tests/data/report").glob("*-tomcat-grid-*/run.json"))


def came(
    told: predictions.Setting, true: predictions.Setting, samples: bool = True
) -> tuple[str, RunRecord]:
    record = predictions.record_of(told, true, QUIET, samples)
    return in_short(record), record


def test_a_figure_that_was_not_measured_does_not_count_as_within() -> None:
    said, _ = came(TOLD, TOLD)
    assert said == "yes: 6 of 6 figures measured, all within"
    said, record = came(TOLD, TOLD, samples=False)
    assert said == "yes: 4 of 6 figures measured, all within"
    record.connections.established_peak = None
    assert in_short(record) == "yes: 3 of 6 figures measured, all within"


def test_fewer_threads_are_noticed_where_the_number_of_waves_stays() -> None:
    """30 users are two waves on 20 threads, and on 18."""
    users = replace(TOLD, spike=replace(TOLD.spike, users=30))
    fewer = users.fewer_threads()
    assert fewer is not None
    said, record = came(users, fewer)
    assert said == "no: workers 18 (19 to 22)"
    assert record.steps[0].workers_seen == 18


def test_a_longer_service_time_is_noticed() -> None:
    said, _ = came(TOLD, TOLD.slower())
    assert "service time 2.61 s (2 s to 2.19 s)" in said


def test_the_start_has_three_seconds_only_where_users_exceed_the_accept_queue() -> None:
    spike = Spike(users=101, service_seconds=2, timeout_seconds=60)
    held = predict(Server(200, 8192, 100, 20), spike)
    retried = predict(Server(200, 8192, 99, 20), spike)
    assert (held.last_answer_most_seconds, retried.last_answer_most_seconds) == (2.41, 5.16)


@pytest.mark.parametrize("file", GRID, ids=lambda file: file.parent.name[-4:])
def test_real_runs_had_as_many_workers_and_the_service_time_that_is_predicted(file: Path) -> None:
    record = json.loads(file.read_text())
    effective, step = record["target"]["effective"], record["steps"][0]
    server = Server(
        int(effective["TOMCAT_MAX_THREADS"]),
        int(effective["TOMCAT_MAX_CONNECTIONS"]),
        int(effective["TOMCAT_ACCEPT_COUNT"]),
        effective["TOMCAT_KEEP_ALIVE_TIMEOUT"] / 1000,
    )
    found = RunRecord.model_validate(record)
    found.prediction = predict(server, Spike(300, 2, 15))
    found.steps[0].workers_seen = step["waves"][0]["answers"]
    assert in_short(found) == "yes: 6 of 6 figures measured, all within"


def rates(*steps: dict[str, Any]) -> RunRecord:
    """20 threads at 0.05 s: 400/s. Steps of 10 s."""
    told = TargetRecord(url="", settings={}, effective={"TOMCAT_MAX_THREADS": 20}, runtime="host")
    made = [plain_step(**{"server_mean_seconds": 0.0505, **step}) for step in steps]
    return plain_record(*made, predicted_rate=400.0, target=told)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (
            [{"rate": 300, "server_rate": 299.0}],
            "yes: 1 of 2 figures measured, all within (no step asked for 400/s)",
        ),
        (
            [{"rate": 300, "server_rate": 299.0}, {"rate": 500, "server_rate": 391.0}],
            "yes: 2 of 2 figures measured, all within",
        ),
        # Threads 10 % fewer.
        (
            [{"name": "most", "rate": 500, "server_rate": 352.0}],
            "no: rate 352/s (370.4 to 404/s): most: 352/s of 500/s asked for",
        ),
        ([{"rate": 500, "server_rate": 440.0}], "more than the workers can answer"),
        # A service time 30 % longer, at half the rate.
        (
            [{"rate": 200, "server_rate": 199.0, "server_mean_seconds": 0.105}],
            "no: service time 105 ms (50 ms to 79 ms)",
        ),
        # The timer could not be read.
        (
            [{"rate": 500, "server_mean_seconds": None}],
            "unknown: none of 2 figures measured",
        ),
    ],
)
def test_a_predicted_rate_has_a_verdict(steps: list[dict[str, Any]], said: str) -> None:
    record = rates(*steps)
    assert said in in_short(record)
    assert within(record) is {"y": True, "n": False, "u": None}[in_short(record)[0]]


def test_a_driver_at_its_limit_says_nothing_of_the_rate() -> None:
    record = rates({"rate": 500, "server_rate": 200.0})
    record.steps[0].generator.limited = True
    assert checks(record)[0].within is None


def test_a_searched_capacity_is_as_predicted_or_not() -> None:
    def said(held: float | None, failed: float | None) -> str:
        return rate_text(400, held, failed).partition(": ")[2]

    assert said(390, 410) == "as predicted"
    assert said(450, 470) == "not as predicted, more than 432/s passed"
    assert said(None, 360) == "not as predicted, less than 370.4/s failed"
    assert said(300, None) == "not reached"
    # Any rate between 200/s and 800/s would do.
    assert said(200, 800) == said(None, 800) == "not tested near it"
    assert said(380, 800) == said(200, 420) == "as predicted"


def test_nine_of_ten_other_targets_are_noticed_and_few_that_are_as_told() -> None:
    """400 random settings each; docs/connections.md, section 8."""
    found = {name: wrong[""] / 400 for name, wrong in predictions.noticed(400, 1, True).items()}
    assert found["service time 30 % longer"] >= 0.9
    assert found["threads 10 % fewer"] >= 0.9
    assert found["as told"] <= 0.05
