"""Objectives and verdicts."""

import pytest

from spikelab.judge import generator_limited, judge_step
from spikelab.record import Generator, Latency
from spikelab.slo import parse_objective

HEALTHY = Generator(limited=False)


def verdict(objective: str, requests: int, failures: int, p95: float | None) -> str:
    latency = Latency(p95=p95).model_dump()
    return judge_step([parse_objective(objective)], requests, failures, latency, HEALTHY)


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
    assert verdict(objective, requests, failures, p95) == wanted


def test_a_generator_at_its_limit_decides_nothing() -> None:
    limited = Generator(limited=True)
    objective = parse_objective("success >= 100%")
    assert judge_step([objective], 10, 0, {}, limited) == "inconclusive"
    assert judge_step([objective], 10, 10, {}, limited) == "inconclusive"


def test_a_generator_is_limited_near_all_cores() -> None:
    assert generator_limited(1.9, 2) is True
    assert generator_limited(1.0, 2) is False
    assert generator_limited(None, 2) is None
