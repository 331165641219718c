"""locust/lib/slo.py, tally.py and summary.py: what a run says of itself."""

import json
import math
import sys
from pathlib import Path
from random import Random

import pytest

from spikelab import paths

sys.path.insert(0, str(paths.ROOT / "locust"))
from lib.events import Region
from lib.plan import Plan, PlanError
from lib.slo import missed, objectives_by_phase, parse_objective
from lib.summary import write_summary
from lib.tally import Tally, error_class


def tally(good: int, failed: int, seconds: float = 0.2) -> Tally:
    result = Tally()
    for _ in range(good):
        result.answer(seconds, 5)
    for _ in range(failed):
        result.failure(503, RuntimeError("503"))
    return result


def holds(text: str, measured: Tally) -> bool:
    return not missed([parse_objective(text)], measured)


def test_exactly_99_9_percent_is_met_and_one_failure_more_is_not() -> None:
    for text in ("success >= 99.9%", "success >= 0.999"):
        assert holds(text, tally(999, 1))
        assert not holds(text, tally(998, 2))


def test_failures_are_no_miss_by_themselves() -> None:
    assert holds("success >= 50%", tally(5, 5))


def test_a_percentile_is_judged_by_the_count_of_its_misses() -> None:
    measured = tally(99, 2, 0.9)
    measured.slow["p95 < 1s"] = 3
    assert holds("p95 < 1s", measured)  # 5 of 101
    measured.slow["p95 < 1s"] = 4
    assert not holds("p95 < 1s", measured)


def test_an_objective_that_stands_twice_is_one() -> None:
    """Its slow answers would count twice, as they are counted by its text."""
    plan = Plan(testid="t", slo=("p95 < 1s", "success >= 99%", "p95 < 1s"))
    for given in ("", "p95 < 1s, success >= 99%, p95 < 1s"):
        found = objectives_by_phase(plan, "hello", given)["hello"]
        assert [each.text for each in found] == ["p95 < 1s", "success >= 99%"]


def test_a_run_without_a_request_misses() -> None:
    assert not holds("success >= 0%", Tally())
    assert not holds("p95 < 60m", Tally())


def test_a_failed_request_counts_as_infinite() -> None:
    assert holds("p95 < 1s", tally(95, 5))
    assert not holds("p95 < 1s", tally(94, 6))
    assert not holds("p99.9 < 10m", tally(998, 2))


@pytest.mark.parametrize("text", ["p95 < 3", "success >= 5s", "success >= 101%", "fast", "p95 1s"])
def test_an_objective_that_is_not_understood_is_named(text: str) -> None:
    with pytest.raises(PlanError, match=r"slo "):
        parse_objective(text)


def test_percentiles_are_within_a_thousandth_of_the_exact_ones() -> None:
    noise = Random(7)
    values = sorted(noise.lognormvariate(-4, 1.5) for _ in range(20_000))
    measured = Tally()
    for value in values:
        measured.answer(value, 0)
    for percentile in (1, 50, 90, 99, 99.9):
        exact = values[math.ceil(round(percentile * len(values) / 100, 6)) - 1]
        got = measured.percentile_seconds(percentile, failures_as_infinite=False)
        assert got == pytest.approx(exact, rel=0.001)
    assert measured.percentile_seconds(100, failures_as_infinite=False) == values[-1]


def test_workers_add_up_through_their_messages() -> None:
    whole, part = tally(10, 1, 0.1), tally(5, 2, 0.9)
    whole.when(100.0, 100.1, first=True)
    part.when(99.5, 101.0, first=True)
    part.when(103.0, 103.5, first=False)
    for each in (whole, part):
        for number in range(4):
            each.keep_body(500 + number, lambda number=number: f"{number}" * 300)
    whole.add(Tally.from_message(json_keys_as_numbers(part)))
    assert (whole.requests, whole.completed, whole.failures) == (18, 18, 3)
    assert whole.percentile_seconds(100, failures_as_infinite=False) == 0.9
    assert whole.good.total() == 15
    assert (whole.started, whole.ended, whole.start_spread_seconds) == (99.5, 103.5, 0.5)
    assert whole.bodies == [f"50{number}: " + f"{number}" * 200 for number in range(4)]


def json_keys_as_numbers(part: Tally) -> dict[str, object]:
    message = part.to_message()
    assert type(message["good"]) is dict  # Locust's messages carry plain types alone
    assert type(message["errors"]) is dict
    return message


def test_slow_and_late_answers_add_up_through_messages() -> None:
    whole, part = Tally(), Tally()
    whole.slow["p95 < 1s"], part.slow["p95 < 1s"], part.slow["p99 < 2s"] = 1, 2, 3
    whole.late_answers, part.late_answers = 4, 5
    whole.add(Tally.from_message(json_keys_as_numbers(part)))
    assert (whole.slow, whole.late_answers) == ({"p95 < 1s": 3, "p99 < 2s": 3}, 9)


def test_a_limit_includes_itself_where_it_says_so() -> None:
    below, at_most = parse_objective("p95 < 1s"), parse_objective("p95 <= 1s")
    assert (below.is_missed_by(1.0), at_most.is_missed_by(1.0)) == (True, False)
    assert (below.is_missed_by(0.999), at_most.is_missed_by(1.001)) == (False, True)
    assert not parse_objective("success >= 99%").is_missed_by(60)


def test_each_error_has_its_class() -> None:
    assert error_class(404, RuntimeError()) == "http_4xx"
    assert error_class(503, RuntimeError()) == "http_5xx"
    assert error_class(0, ConnectionRefusedError()) == "refused"
    assert error_class(0, ConnectionResetError()) == "reset"
    assert error_class(0, BrokenPipeError()) == "reset"
    assert error_class(0, TimeoutError()) == "request_timeout"
    assert error_class(0, RuntimeError()) == "other"


def test_the_summary_has_null_for_infinite(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    mixed = tally(90, 9)
    mixed.failure(0, ConnectionRefusedError())
    mixed.when(100.0, 100.2, first=True)
    mixed.when(101.5, 101.7, first=True)
    mixed.keep_body(503, lambda: "no healthy upstream")
    regions = [
        Region("t1", "one", "users", "5 users", 99_900, 110_000),
        Region("t1", "two", "rate", "5 rate", 110_000, 120_000),
    ]
    objectives = {"two": [parse_objective("success >= 99%"), parse_objective("p95 < 1s")]}
    measured = {"one": mixed, "two": Tally()}
    write_summary(str(path), "2.47.0", "t1", regions, measured, objectives, ["p95 < 1s"], 2)
    summary = json.loads(path.read_text())
    phase = summary["phases"][0]
    assert (phase["requests"], phase["completed"], phase["failures"]) == (100, 99, 10)
    assert (phase["errors"]["http_5xx"], phase["errors"]["refused"]) == (9, 1)
    assert phase["latency"]["count"] == 90
    assert phase["latency"]["seconds"] == pytest.approx([0.2] * 90, rel=0.001)
    assert phase["latency_mean_seconds"] == pytest.approx(0.2)
    assert phase["response_bytes_mean"] == 5
    assert (phase["started_ms"], phase["started"], phase["ended"]) == (99_900, 100_000, 101_700)
    assert (phase["start_spread_seconds"], phase["dropped"]) == (1.5, 0)
    assert phase["bodies"] == ["503: no healthy upstream"]
    assert summary["thresholds"] == {"failed": ["p95 < 1s"]}
    assert summary["events_pending"] == 2
    nothing = summary["phases"][1]
    assert (phase["slow"], phase["late_answers"]) == ({}, None)
    assert (nothing["slow"], nothing["late_answers"]) == ({"p95 < 1s": 0}, 0)
    assert (nothing["name"], nothing["requests"], nothing["started_ms"]) == ("two", 0, 110_000)
    assert nothing["started"] is nothing["ended"] is nothing["start_spread_seconds"] is None
