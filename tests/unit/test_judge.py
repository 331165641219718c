"""Objectives and verdicts."""

from typing import Any

import pytest

from spikelab.drivers.process import Use
from spikelab.judge import generator_limited, judge_by_bounds, judge_step, spoiled, with_drops
from spikelab.objectives import Verdict, parse_objective
from spikelab.plans.model import Phase
from spikelab.results.run import Latency, Step, StepGenerator
from tests.support.records import plain_step, plain_summary

RATE, SECONDS = 100.0, 10


def step(
    requests: int = 1000,
    failures: int = 0,
    dropped: int = 0,
    latency: Latency | None = None,
    limited: bool | None = False,
    drain_seconds: float = 0.1,
    rate: float | None = RATE,
    slow: dict[str, int] | None = None,
    late_answers: int | None = None,
    verdict: Verdict = "inconclusive",
) -> Step:
    return plain_step(
        SECONDS + drain_seconds,
        rate,
        started_rate=requests / SECONDS,
        requests=requests,
        completed=requests,
        dropped=dropped,
        failures=failures,
        slow=slow or {},
        late_answers=late_answers,
        latency_with_failures_seconds=latency or Latency(),
        drain_seconds=drain_seconds,
        generator=StepGenerator(limited=limited),
        verdict=verdict,
    )


def verdict(judged: Step, objective: str = "success >= 99%", tried: int | None = 1000) -> str:
    return judge_step(judged, [parse_objective(objective)], tried)


@pytest.mark.parametrize(
    ("objective", "requests", "failures", "p95", "wanted"),
    [
        ("success >= 99.9%", 1000, 1, 0.1, "pass"),
        ("success >= 99.9%", 1000, 2, 0.1, "fail"),
        ("success >= 0.999", 1000, 1, 0.1, "pass"),
        ("success >= 100%", 1000, 0, 0.1, "pass"),
        ("success >= 100%", 10_000, 1, 0.1, "fail"),
        ("p95 < 1s", 1000, 0, 0.999, "pass"),
        ("p95 < 1s", 1000, 0, 1.0, "fail"),
        ("p95 <= 1000ms", 1000, 0, 1.0, "pass"),
        # More than 5 % failed, so the 95th percentile of what users saw is infinite.
        ("p95 < 1s", 1000, 100, None, "fail"),
    ],
)
def test_an_objective_decides(
    objective: str, requests: int, failures: int, p95: float | None, wanted: str
) -> None:
    judged = step(requests, failures, latency=Latency(p95=p95), rate=None)
    assert verdict(judged, objective, tried=None) == wanted


def test_a_generator_at_its_limit_decides_nothing() -> None:
    assert verdict(step(limited=True)) == "inconclusive"
    assert verdict(step(limited=True, failures=1000)) == "inconclusive"


def test_a_generator_is_limited_near_all_cores_or_when_its_threads_wait_for_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LOCUST_PROCESSES", raising=False)
    assert generator_limited(Use(cores=1.9, waiting=0.0), 2, "k6") is True
    assert generator_limited(Use(cores=1.0, waiting=0.3), 2, "k6") is False
    # Locust is one process, and one core is all that it can use.
    assert generator_limited(Use(cores=0.95, waiting=0.0), 2, "locust") is True
    assert generator_limited(Use(cores=0.3, waiting=1.1), 2, "k6") is True
    # Busy beside a busy target, but it got most of what it asked for.
    assert generator_limited(Use(cores=0.8, waiting=1.1), 2, "k6") is False
    assert generator_limited(None, 2, "k6") is None


@pytest.mark.parametrize(
    ("processes", "cores", "limited"),
    [("2", 1.6, False), ("2", 1.8, True), ("0", 0.9, True), ("8", 3.5, True), ("-1", 3.3, False)],
)
def test_locust_has_a_core_for_each_of_its_processes(
    processes: str, cores: float, limited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCUST_PROCESSES", processes)
    assert generator_limited(Use(cores=cores, waiting=0.0), 4, "locust") is limited


def test_drops_of_a_healthy_generator_are_misses() -> None:
    assert verdict(step(requests=995, dropped=5), "success >= 99%") == "pass"
    assert verdict(step(requests=985, dropped=15), "success >= 99%") == "fail"


def test_drops_of_a_generator_that_nobody_saw_decide_nothing() -> None:
    assert verdict(step(requests=985, dropped=15, limited=None)) == "inconclusive"


def test_a_rate_that_was_not_started_is_not_held() -> None:
    assert verdict(step(requests=979, dropped=21), "success >= 50%") == "fail"
    assert verdict(step(requests=981, dropped=19), "success >= 50%") == "pass"


def test_a_generator_behind_its_own_schedule_decides_nothing() -> None:
    # Neither started nor dropped: it was not the target that held these back.
    assert verdict(step(requests=900), "success >= 50%") == "inconclusive"


def test_a_queue_left_behind_fails_though_every_answer_came() -> None:
    in_time = Latency(p99=0.2)
    assert verdict(step(latency=in_time), "p99 < 250ms") == "pass"
    assert verdict(step(latency=in_time, drain_seconds=4), "p99 < 250ms") == "fail"
    assert verdict(step(latency=in_time, drain_seconds=4), "p99 < 5s") == "pass"


@pytest.mark.parametrize(
    ("late", "objective", "wanted"),
    [
        # Of the 100 requests due in the last second, or the 200 in the last two.
        (1, "p99 < 250ms", "pass"),
        (3, "p99 < 250ms", "pass"),
        (4, "p99 < 250ms", "fail"),
        (4, "p95 < 250ms", "pass"),
        (15, "p95 < 2s", "pass"),
        (16, "p95 < 2s", "fail"),
        # Without a limit nobody knows what is late.
        (50, "success >= 99%", "pass"),
    ],
)
def test_a_straggler_is_no_queue(late: int, objective: str, wanted: str) -> None:
    in_time = Latency(p95=0.2, p99=0.2)
    judged = step(latency=in_time, drain_seconds=9, late_answers=late)
    assert verdict(judged, objective) == wanted


def test_a_ramp_s_queue_is_of_those_that_were_due_at_its_end() -> None:
    # From 0 to 200/s: 100/s in the mean. 12 late ones of the last 100 are too many, of 200 not.
    ramp = step(latency=Latency(p95=0.2), drain_seconds=9, late_answers=12)
    objectives = [parse_objective("p95 < 500ms")]
    assert judge_step(ramp, objectives, 1000) == "fail"
    assert judge_step(ramp, objectives, 1000, end_rate=200.0) == "pass"


BOTH = ("success >= 99%", "p95 < 1s")


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, "pass"),
        # 1 % of 1,000 may fail: 4 prove that it is less, 16 that it is more.
        ({"failures": 4}, "pass"),
        ({"failures": 5}, "inconclusive"),
        ({"failures": 15}, "inconclusive"),
        ({"failures": 16}, "fail"),
        ({"dropped": 4}, "pass"),
        ({"dropped": 5}, "inconclusive"),
        # 5 % may be slow, failures and drops among them.
        ({"slow": 38}, "pass"),
        ({"slow": 39}, "inconclusive"),
        ({"slow": 36, "failures": 2, "dropped": 2}, "inconclusive"),
        ({"slow": 63}, "fail"),
        ({"slow": 63, "failures": 10}, "fail"),
        ({"late_answers": 20}, "fail"),
        ({"late_answers": 1, "drain_seconds": 9}, "pass"),
    ],
)
def test_a_search_judges_by_bounds(changes: dict[str, Any], wanted: str) -> None:
    slow = {"p95 < 1s": changes.pop("slow", 0)}
    judged = step(**{"late_answers": 0, "verdict": "pass", **changes}, slow=slow)
    assert judge_by_bounds(judged, [parse_objective(text) for text in BOTH]) == wanted


@pytest.mark.parametrize(
    ("requests", "dropped", "wanted"),
    [
        # All but one of 99 %.
        (989, 0, "pass"),
        # Neither started nor dropped: k6 was a little behind.
        (985, 0, "inconclusive"),
        (985, 15, "fail"),
        # By judge_step, so the driver was in order: Locust's users waited.
        (970, 0, "fail"),
    ],
)
def test_a_search_wants_99_percent_started(requests: int, dropped: int, wanted: str) -> None:
    judged = step(requests, dropped=dropped, late_answers=0, verdict="pass")
    assert judge_by_bounds(judged, [parse_objective("success >= 90%")]) == wanted


def test_a_search_decides_nothing_that_judge_step_does_not() -> None:
    judged = step(failures=500, late_answers=0)
    assert judge_by_bounds(judged, [parse_objective("success >= 99%")]) == "inconclusive"


def test_a_search_without_an_objective_decides_nothing() -> None:
    assert judge_by_bounds(step(verdict="pass"), []) == "inconclusive"


def test_percentiles_with_drops_take_the_next_higher_known_one() -> None:
    latency = Latency(p50=1, p90=2, p95=3, p99=4, p99_9=5, max=6)
    assert with_drops(latency, 1000, 0)["p99"] == 4
    # 4 of 1,000: rank 990 of 996 started is above their p99 and below their p99.9.
    assert with_drops(latency, 996, 4)["p99"] == 5
    assert with_drops(latency, 996, 4)["p99_9"] is None
    # 2 % are infinite, so the 99th percentile is.
    assert with_drops(latency, 980, 20)["p99"] is None
    assert with_drops(latency, 980, 20)["p95"] == 4


@pytest.mark.parametrize(
    ("started", "reasons"),
    [
        (1000, []),
        (999, ["spike: only 999 of 1,000 users started"]),
        (995, ["spike: only 995 of 1,000 users started"]),
    ],
)
def test_a_spike_is_valid_only_with_all_of_its_users(started: int, reasons: list[str]) -> None:
    asked = Phase.model_validate(
        {"name": "spike", "kind": "users", "value": 1000, "duration": "1m"}
    )
    assert spoiled(asked, plain_summary(name="spike", requests=started), spike=True) == reasons
    # Users that go on for a time begin as the target lets them.
    assert spoiled(asked, plain_summary(name="spike", requests=started), spike=False) == []
