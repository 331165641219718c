"""Runs in memory for the tests of comparisons."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from spikelab.comparison.pairing import Arm, arm_of_experiment
from spikelab.results.run import Latency, RunRecord, Step
from tests.support.records import START, plain_record, plain_step

_NUMBERS = iter(range(1, 100_000))


def latency(seconds: float | None) -> Latency:
    return Latency(**dict.fromkeys(Latency.model_fields, seconds))


def step(p95: float | None = 0.1, **changes: Any) -> Step:
    latencies = {
        "latency_seconds": latency(p95),
        "latency_mean_seconds": p95,
        "latency_with_failures_seconds": latency(p95),
    }
    return plain_step(**{"requests": 1000, "completed": 1000, **latencies, **changes})


def record(*steps: Step, **changes: Any) -> RunRecord:
    """Runs of a repeat follow each other, whichever arm is made first."""
    number = next(_NUMBERS)
    started = START + timedelta(days=steps[0].repeat if steps else 1, seconds=number)
    times = {"started": started, "ended": started + timedelta(seconds=2)}
    testid = f"20261121T010203Z-mine-{number:04x}"
    return plain_record(*steps, **{"testid": testid, **times, **changes})


def runs(figures: Sequence[float | None], variant: str, **values: Any) -> list[RunRecord]:
    """One run a repeat, with these latencies; null: failures reach every percentile."""
    return [
        record(
            step(p95, variant=variant, repeat=repeat, failures=0 if p95 else 1000),
            values=values,
        )
        for repeat, p95 in enumerate(figures, 1)
    ]


def arms(a: Sequence[RunRecord], b: Sequence[RunRecord], order: str = "abba") -> tuple[Arm, Arm]:
    """Two variants of one experiment, `a` and `b`."""
    both = [*a, *b]
    return (
        arm_of_experiment("mine-1", both, "a", order),
        arm_of_experiment("mine-1", both, "b", order),
    )
