"""Percentiles of a known distribution, replayed by a real server: those in the record and those of
the histogram that dashboards draw, by both drivers."""

import math
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from spikelab.objectives import QUANTILES
from tests.support.lab import Lab
from tests.support.servers.replay import log_normal_quantiles, replay

RATE, SECONDS = 250, 8
PLAN: dict[str, Any] = {
    "name": "replay",
    "about": "answers that take a known time",
    "script": {"k6": "steady", "locust": "hello"},
    "phases": [{"name": "replay", "kind": "rate", "value": RATE, "duration": f"{SECONDS}s"}],
    "slo": ["p95 < 200ms", "p99 < 300ms"],
}
pytestmark = pytest.mark.alone

LIMITS = {"p95 < 200ms": 0.2, "p99 < 300ms": 0.3}
# docs/drivers.md: what a driver's own summary may be off by, as a share.
SUMMARY = {"k6": 0.0, "locust": 0.001}
HISTOGRAM = 0.09
# The time on the way, there and back, and until driver and server get a core of a busy machine.
WIRE_SECONDS = 0.008


def between(values: list[float], quantile: float) -> tuple[float, float]:
    """The values below and above a quantile, whichever way of counting ranks is taken."""
    ordered, rank = sorted(values), quantile * (len(values) - 1)
    return ordered[max(0, math.floor(rank) - 1)], ordered[min(len(values) - 1, math.ceil(rank) + 1)]


@pytest.mark.parametrize("driver", ["k6", "locust"])
def test_percentiles_are_those_of_the_answers(lab: Lab, tmp_path: Path, driver: str) -> None:
    path = tmp_path / "replay.yaml"
    with replay(seed=7) as url:
        path.write_text(yaml.safe_dump({**PLAN, "target": {"url": url}}))
        record = lab.run(str(path), "--driver", driver, exit_code=99)
        sent = httpx.get(f"{url}/sent", trust_env=False).json()
    (step,) = record["steps"]
    assert len(sent) == pytest.approx(RATE * SECONDS, rel=0.02)
    known, latency = log_normal_quantiles(), step["latency_seconds"]
    for key, quantile in QUANTILES.items():
        for values in (known, sent):
            low, high = between(values, quantile)
            longest = high * (1 + SUMMARY[driver]) + WIRE_SECONDS
            assert low * (1 - SUMMARY[driver]) <= latency[key] <= longest, (key, values is known)
    for key in ("p50", "p90", "p95", "p99"):
        assert histogram_quantile(lab, record["testid"], QUANTILES[key]) == pytest.approx(
            latency[key], rel=HISTOGRAM
        )
    for text, limit in LIMITS.items():
        # Those that the way made slow come on top.
        least, most = (sum(each >= limit - way for each in sent) for way in (0, WIRE_SECONDS))
        assert least <= step["slow"][text] <= most
    good_in_time = step["requests"] - step["failures"] - step["slow"]["p99 < 300ms"]
    assert step["goodput"] == pytest.approx(good_in_time / SECONDS, abs=0.001)


def histogram_quantile(lab: Lab, testid: str, quantile: float) -> float:
    latency = f'sum(sum_over_time(loadtest:latency_seconds{{testid="{testid}"}}[5m]))'
    value = lab.prometheus.value(f"histogram_quantile({quantile}, {latency})")
    assert value is not None
    return value
