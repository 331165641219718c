"""Steps of a capacity search: limits on resources, verdicts, the overload after it."""

from datetime import timedelta
from typing import Any

import pytest

from spikelab.experiments.capacity_step import judged
from spikelab.experiments.limits import parse_limit
from spikelab.experiments.overload import Load, recovery_seconds
from spikelab.experiments.overload import judged as overload_judged
from spikelab.measure import TARGET_DIED
from spikelab.record import (
    Errors,
    Latency,
    Resources,
    RunRecord,
    Step,
    StepGenerator,
)
from spikelab.series import Series
from spikelab.signals import load
from spikelab.slo import parse_objective
from tests.unit.records import START, plain_record, plain_step

_P95 = parse_objective("p95 < 100ms")


def step(**changes: Any) -> Step:
    """A step of 10 s at 400/s that holds everything."""
    latency = Latency(p50=0.05, p90=0.05, p95=0.05, p99=0.06, p99_9=0.07, max=0.07)
    figures: dict[str, Any] = {
        "achieved_rate": 398.0,
        "slow": {_P95.text: 0},
        "latency_seconds": latency,
        "latency_with_failures_seconds": latency,
        "drain_seconds": 0.05,
        "generator": StepGenerator(limited=False),
        "resources": Resources(cpu_share=0.5, memory_bytes=300_000_000, open_files=900),
    }
    return plain_step(rate=400.0, **{**figures, **changes})


def record(*steps: Step, reasons: tuple[str, ...] = ()) -> RunRecord:
    return plain_record(*steps, valid=not reasons, reasons=list(reasons))


@pytest.mark.parametrize(
    ("text", "used", "kept"),
    [
        ("cpu < 80%", Resources(cpu_share=0.79), True),
        ("cpu<0.8", Resources(cpu_share=0.8), False),
        ("cpu <= 80%", Resources(cpu_share=0.8), True),
        ("memory < 500MB", Resources(memory_bytes=499_999_999), True),
        ("memory < 0.5 GiB", Resources(memory_bytes=2**29), False),
        ("open_files < 5000", Resources(open_files=5000), False),
        ("worker_threads < 90%", Resources(), None),
    ],
)
def test_limits(text: str, used: Resources, kept: bool | None) -> None:
    assert parse_limit(text).holds(used) is kept


@pytest.mark.parametrize(
    "text",
    ["cpu > 80%", "disk < 5", "cpu < 80", "memory < 500", "memory < 5XB", "open_files < 5%", ""],
)
def test_a_limit_that_is_none_is_told_the_form(text: str) -> None:
    with pytest.raises(ValueError, match="write it like"):
        parse_limit(text)


@pytest.mark.parametrize(
    ("changes", "limits", "verdict", "kinds"),
    [
        ({}, ["cpu < 80%"], "pass", []),
        ({"slow": {_P95.text: 400}}, [], "fail", ["objective"]),
        ({"slow": {_P95.text: 200}}, [], "inconclusive", []),
        ({"generator": StepGenerator(limited=True), "verdict": "inconclusive"}, [], None, []),
        ({}, ["cpu < 40%"], "fail", ["resource"]),
        ({}, ["worker_threads < 90%"], "inconclusive", []),
        ({"drain_seconds": 0.17}, [], "fail", ["queue"]),
        ({"drain_seconds": 0.45}, [], "fail", ["rate", "queue"]),
        ({"completed": 3900, "failures": 100}, [], "fail", ["rate"]),
    ],
)
def test_verdicts(
    changes: dict[str, Any], limits: list[str], verdict: str | None, kinds: list[str]
) -> None:
    found = judged(record(step(**changes)), 400, [_P95], [parse_limit(text) for text in limits])
    assert found.verdict == (verdict or "inconclusive")
    assert [miss.kind for miss in found.missed] == kinds
    assert (found.why == "") == (found.verdict == "pass")


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
    ],
)
def test_what_an_overload_does(changes: dict[str, Any], outcome: str) -> None:
    over = step(**{"name": "overload", "requests": 8000, "verdict": "fail", **changes})
    assert overload_judged(record(over), _OVER, [_P95]).outcome == outcome
    died = overload_judged(record(over, reasons=(TARGET_DIED,)), _OVER, [_P95])
    assert died.outcome == "crashes"


def series(late: list[float | None], failed: list[float]) -> Series:
    points: dict[str, list[float | None]] = {
        load.GOOD_RATE.name: [200.0 if seconds else 0.0 for seconds in late],
        load.FAILURE_RATE.name: list(failed),
        load.DROPPED_RATE.name: [0.0] * len(late),
        **{
            signal.name: late
            for signal in (
                load.LATENCY_P50,
                load.LATENCY_P90,
                load.LATENCY_P95,
                load.LATENCY_P99,
                load.LATENCY_P99_9,
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
def test_recovery(late: list[float | None], failed: list[float], seconds: float | None) -> None:
    begun = START + timedelta(seconds=2)
    found = recovery_seconds(series(late, failed), begun, 20, [_P95])
    assert found == seconds
