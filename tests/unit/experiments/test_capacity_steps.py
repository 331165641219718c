"""Steps of a capacity search: limits on resources, verdicts, the overload after it."""

from datetime import timedelta
from typing import Any

import pytest

from spikelab import signals
from spikelab.experiments.capacity import judged
from spikelab.experiments.overload import Load, recovery_seconds
from spikelab.experiments.overload import judged as overload_judged
from spikelab.measure import TARGET_DIED
from spikelab.objectives import parse_limit, parse_objective
from spikelab.results.run import (
    Errors,
    Latency,
    Lateness,
    Resources,
    Rise,
    RunRecord,
    Step,
    StepGenerator,
)
from spikelab.series import Series
from tests.support.records import START, plain_record, plain_step
from tests.support.servers.known_capacity import Workers, fixed

_P95 = parse_objective("p95 < 100ms")


# 97.5 % of a step of 10 s at 400/s.
STARTED_LESS = {"requests": 3900, "completed": 3900, "started_rate": 390.0}


def step(**changes: Any) -> Step:
    """A step of 10 s at 400/s that holds everything."""
    latency = Latency(p50=0.05, p90=0.05, p95=0.05, p99=0.06, p99_9=0.07, max=0.07)
    figures: dict[str, Any] = {
        "achieved_rate": 398.0,
        "slow": {_P95.text: 0},
        "latency_seconds": latency,
        "latency_with_failures_seconds": latency,
        "drain_seconds": 0.05,
        "late_answers": 0,
        "generator": StepGenerator(limited=False),
        "scheduled": 4000,
        "resources": Resources(cpu_share=0.5, memory_bytes=300_000_000, open_files=900),
    }
    return plain_step(rate=400.0, **{**figures, **changes})


def record(*steps: Step, reasons: tuple[str, ...] = ()) -> RunRecord:
    return plain_record(*steps, valid=not reasons, reasons=list(reasons))


@pytest.mark.parametrize(
    ("changes", "limits", "verdict", "kinds"),
    [
        ({}, ["cpu < 80%"], "pass", []),
        ({"slow": {_P95.text: 400}}, [], "fail", ["objective"]),
        ({"slow": {_P95.text: 200}}, [], "inconclusive", []),
        ({"generator": StepGenerator(limited=True), "verdict": "inconclusive"}, [], None, []),
        ({}, ["cpu < 40%"], "fail", ["resource"]),
        ({}, ["worker_threads < 90%"], "inconclusive", []),
        # One answer that comes late is no queue.
        ({"drain_seconds": 4.0, "late_answers": 1}, [], "pass", []),
        ({"drain_seconds": 1.2, "late_answers": 40}, [], "fail", ["queue"]),
        # As many fail as the objective allows.
        ({"completed": 3900, "failures": 100}, [], "pass", []),
        # Dropped, or never started because Locust's users waited.
        ({**STARTED_LESS, "dropped": 100}, [], "fail", ["rate"]),
        ({**STARTED_LESS, "dropped": 100}, ["cpu < 80%"], "fail", ["rate"]),
        ({**STARTED_LESS, "scheduled": None}, [], "fail", ["rate"]),
        # k6 itself was a little behind.
        (STARTED_LESS, [], "inconclusive", []),
        ({**STARTED_LESS, "slow": {_P95.text: 3900}}, [], "inconclusive", []),
    ],
)
def test_a_step_s_verdict_and_what_it_missed(
    changes: dict[str, Any], limits: list[str], verdict: str | None, kinds: list[str]
) -> None:
    found = judged(record(step(**changes)), 400, [_P95], [parse_limit(text) for text in limits])
    assert found.verdict == (verdict or "inconclusive")
    assert [miss.kind for miss in found.missed] == kinds
    assert (found.why == "") == (found.verdict == "pass")


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        (STARTED_LESS, "inconclusive"),
        ({**STARTED_LESS, "dropped": 100}, "fail"),
        # Nobody says what is late: most answers do, the last one alone does not.
        ({"drain_seconds": 4.0}, "pass"),
        ({"drain_seconds": 0.6, "latency_seconds": Latency(p50=0.3, p95=0.55)}, "fail"),
    ],
)
def test_a_search_of_a_limit_alone_wants_the_rate_as_well(
    changes: dict[str, Any], verdict: str
) -> None:
    found = judged(record(step(**changes, late_answers=None)), 400, [], [parse_limit("cpu < 80%")])
    assert found.verdict == verdict, found


def test_a_record_that_did_not_count_slow_answers_decides_no_latency() -> None:
    old = record(step(slow={}))
    old.latency_basis = "http_req_duration"
    found = judged(old, 400, [_P95], [])
    assert (found.verdict, found.why) == ("inconclusive", "p95 < 100ms: slow answers not counted")
    assert judged(old, 400, [parse_objective("success >= 99%")], []).verdict == "pass"


@pytest.mark.parametrize(("started", "verdict"), [(49, "pass"), (48, "fail")])
def test_98_percent_of_the_rate_counts_as_the_rate(started: int, verdict: str) -> None:
    answers = {"requests": started, "completed": started, "started_rate": started / 5}
    healthy = StepGenerator(limited=False)
    few = plain_step(5.0, 10.0, **answers, dropped=50 - started, generator=healthy)
    found = judged(record(few), 10, [], [])
    assert found.verdict == verdict, found


@pytest.mark.parametrize(
    ("rate", "objectives", "verdict"),
    [
        (400.0, ["p95 < 120ms"], "pass"),
        (420.0, ["p95 < 120ms"], "fail"),
        # What the step's length cannot show: the last wait is 0.25 s.
        (420.0, ["p95 < 500ms"], "pass"),
        (400.0, [], "pass"),
        (420.0, [], "fail"),
    ],
)
def test_the_verdict_on_a_small_overload_of_a_server_of_known_capacity(
    rate: float, objectives: list[str], verdict: str
) -> None:
    # 400/s, for 5 s.
    workers = Workers(8, fixed(0.02))
    wanted = [parse_objective(text) for text in objectives]
    due = [number / rate for number in range(int(5 * rate))]
    taken = sorted((end := workers.take(at)) - at for at in due)
    slow = {each.text: sum(seconds >= each.limit for seconds in taken) for each in wanted}
    found = plain_step(
        5.0,
        rate,
        slow=slow,
        late_answers=0 if wanted else None,
        latency_seconds=Latency(p50=taken[len(due) // 2], p95=taken[int(0.95 * len(due))]),
        drain_seconds=end - 5,
    )
    judgement = judged(record(found), rate, wanted, [])
    assert judgement.verdict == verdict, judgement


def test_a_driver_that_is_a_little_behind_is_no_failure_of_the_target() -> None:
    answers = {"requests": 29_250, "completed": 29_250, "started_rate": 975.0}
    quick = Latency(p50=0.02, p95=0.02, p99=0.02)
    behind = plain_step(
        30.0,
        1000.0,
        **answers,
        slow={_P95.text: 0},
        late_answers=0,
        latency_seconds=quick,
        scheduled=30_000,
    )
    found = judged(record(behind), 1000, [_P95], [])
    assert (found.verdict, found.missed) == ("inconclusive", [])
    assert "975 of 1,000/s started" in found.why


def test_a_target_that_died_did_not_hold_the_rate() -> None:
    found = judged(record(step(), reasons=(TARGET_DIED,)), 400, [_P95], [])
    assert (found.verdict, found.missed[0].kind) == ("fail", "death")


_OVER = Load(capacity=400, factor=2, duration="10s", recovery="20s")


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"verdict": "pass"}, "holds"),
        ({"goodput": 380.0, "failures": 4100, "errors": Errors(reset=4100)}, "sheds"),
        ({"goodput": 50.0, "failures": 4100, "errors": Errors(reset=4100)}, "queues"),
        ({"goodput": 380.0, "failures": 4100, "errors": Errors(request_timeout=4100)}, "queues"),
        (
            {"verdict": "inconclusive", "generator": StepGenerator(limited=True)},
            "inconclusive",
        ),
    ],
)
def test_the_outcome_of_an_overload(changes: dict[str, Any], outcome: str) -> None:
    over = step(**{"name": "overload", "requests": 8000, "verdict": "fail", **changes})
    found = overload_judged(record(over), _OVER, [_P95])
    assert found.outcome == outcome
    said = (
        "nothing is decided (the driver was short of CPU)"
        if outcome == "inconclusive"
        else f"it {outcome}"
    )
    assert f"at 2 × that (800/s) {said}" in str(found)
    died = overload_judged(record(over, reasons=(TARGET_DIED,)), _OVER, [_P95])
    assert died.outcome == "crashes"


def test_a_rise_within_an_overload_leaves_nothing_undecided() -> None:
    rising = Rise(first_seconds=0.02, last_seconds=0.09)
    over = step(name="overload", rise=rising, verdict="inconclusive", why="it rises")
    assert overload_judged(record(over), _OVER, [_P95]).outcome == "holds"


@pytest.mark.parametrize(
    ("median_seconds", "outcome"), [(0.5, "queues"), (None, "queues"), (0.12, "inconclusive")]
)
def test_a_driver_that_was_late_explains_no_longer_waits(
    median_seconds: float | None, outcome: str
) -> None:
    late = Lateness(p50=0.001, p99=0.03, max=0.05)
    waited = Latency(p50=median_seconds, p95=1.0)
    over = step(
        name="overload",
        lateness=late,
        latency_with_failures_seconds=waited,
        slow={_P95.text: 3000},
        verdict="inconclusive",
        why="the driver was 30 ms late at p99",
    )
    assert overload_judged(record(over), _OVER, [_P95]).outcome == outcome


def series(late: list[float | None], failed: list[float]) -> Series:
    points: dict[str, list[float | None]] = {
        signals.GOOD_RATE.name: [200.0 if seconds else 0.0 for seconds in late],
        signals.FAILURE_RATE.name: list(failed),
        signals.DROPPED_RATE.name: [0.0] * len(late),
        **{
            signal.name: late
            for signal in (
                signals.LATENCY_P50,
                signals.LATENCY_P90,
                signals.LATENCY_P95,
                signals.LATENCY_P99,
                signals.LATENCY_P99_9,
            )
        },
    }
    return Series(testid="x", begun=START, step_seconds=1, points=points)


@pytest.mark.parametrize(
    ("late", "failed", "seconds"),
    [
        ([1, 1, 0.05, 0.05, 0.05], [0, 0, 0, 0, 0], 0),
        ([1, 1, 1, 0.05, 0.05, 0.05], [0] * 6, 1),
        ([1, 1, 0.05, 1, 0.05, 0.05, 0.05], [0] * 7, 2),
        ([1, 1, 0.05, 0.05, 0.05, 0.05], [0, 0, 50, 0, 0, 0], 1),
        ([1, 1, None, None, None, 0.05, 0.05, 0.05], [0] * 8, 3),
        ([1, 1, 0.05, 0.05], [0] * 4, None),
    ],
)
def test_recovery_is_the_time_until_latency_and_failures_are_normal_again(
    late: list[float | None], failed: list[float], seconds: float | None
) -> None:
    begun = START + timedelta(seconds=2)
    found = recovery_seconds(series(late, failed), begun, 20, [_P95])
    assert found == seconds
