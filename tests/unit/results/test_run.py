"""Run records: their totals, and those of schema 1."""

import json
from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from spikelab import paths
from spikelab.results.run import RunRecord, Step, Totals
from tests.support.records import START, plain_step


def step(begin: float, length: float, completed: int) -> Step:
    started = START + timedelta(seconds=begin)
    times = {"started": started, "ended": started + timedelta(seconds=length)}
    return plain_step(length, **times, requests=completed, completed=completed)


@pytest.mark.parametrize(
    ("steps", "seconds"),
    [
        # One after the other, with a pause of 5 s between them, which does not count.
        ([(0, 10), (15, 10)], 20),
        # The second lies within the first, which the third begins in and outlasts by 5 s.
        ([(0, 20), (5, 5), (15, 10)], 25),
    ],
)
def test_the_rate_is_of_the_time_in_which_any_step_ran(
    steps: list[tuple[float, float]], seconds: float
) -> None:
    totals = Totals.of([step(begin, length, 1000) for begin, length in steps])
    assert totals.completed == 1000 * len(steps)
    assert totals.achieved_rate == pytest.approx(totals.completed / seconds)


OLD = paths.ROOT / "tests/data/report/20261121T120624Z-comparisons-db31"


def schema_1(**changes: Any) -> RunRecord:
    """One of a lab before schema 2, with changes to its first step."""
    data = json.loads((OLD / "run.json").read_text())
    assert data["schema"] == 1
    data["steps"][0].update(changes)
    return RunRecord.model_validate_json(json.dumps(data))


def test_a_record_of_schema_1_says_that_its_latencies_are_the_driver_s() -> None:
    record = RunRecord.read_in(OLD)
    assert record is not None
    assert (record.schema_version, record.latency_basis) == (2, "http_req_duration")
    assert record.steps[0].completed_rate is record.steps[0].lateness is None
    assert RunRecord.model_validate(record.to_json()) == record


@pytest.mark.parametrize(
    ("changes", "basis"),
    [({"driver": "locust"}, "request"), ({"labels": {"imported": "old.csv"}}, "report")],
)
def test_so_does_one_of_locust_or_of_another_tool(changes: dict[str, Any], basis: str) -> None:
    data = {**json.loads((OLD / "run.json").read_text()), **changes}
    assert RunRecord.model_validate(data).latency_basis == basis


@pytest.mark.parametrize(
    ("changes", "of_step"),
    [
        ({"steps": None}, {}),
        ({"steps": ["one"]}, {}),
        ({}, {"requests": "many", "dropped": 3}),
        ({}, {"dropped": 3, "latency_with_failures_seconds": None}),
        ({}, {"offered_rate": "all", "started_rate": 1}),
    ],
)
def test_a_damaged_record_of_schema_1_is_none(
    changes: dict[str, Any], of_step: dict[str, Any]
) -> None:
    data = json.loads((OLD / "run.json").read_text())
    data["steps"][0].update(of_step)
    with pytest.raises(ValidationError):
        RunRecord.model_validate_json(json.dumps({**data, **changes}))


def test_dropped_requests_of_schema_1_are_infinite_in_its_percentiles() -> None:
    """Only printed percentiles are known: the next one stands for those between."""
    known = {"p50": 1, "p90": 2, "p95": 3, "p99": 4, "p99_9": 5, "max": 6}
    few = schema_1(requests=996, dropped=4, latency_with_failures_seconds=known)
    assert few.steps[0].latency_with_failures_seconds.p99 == 5
    assert few.steps[0].latency_with_failures_seconds.p99_9 is None
    many = schema_1(requests=980, dropped=20, latency_with_failures_seconds=known)
    assert many.steps[0].latency_with_failures_seconds.p95 == 4
    assert many.steps[0].latency_with_failures_seconds.p99 is None
    # Once: a record that is read and written again is of schema 2.
    assert RunRecord.model_validate(few.to_json()).steps == few.steps
