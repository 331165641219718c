"""The verdict so far of a run that goes."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from spikelab.drivers.base import Run
from spikelab.live import LiveRun
from spikelab.plans.model import Plan
from spikelab.stores import Prometheus

ANSWERED, FAILED = 1000.0, 500.0


class Counts(Prometheus):
    """Of a run by Locust, whose series name no phase: half of its requests failed."""

    def query(self, expression: str, at: object = None) -> dict[str, float]:
        if "requests:total" in expression:
            return {"": ANSWERED}
        return {"": FAILED} if "failures:total" in expression else {}


def phase(name: str, start: str, slo: list[str] | None, judged: bool = True) -> dict[str, Any]:
    times = {"start": start, "duration": "10s"}
    return {"name": name, "kind": "rate", "value": 50, **times, "slo": slo, "judged": judged}


def verdict_so_far(*phases: dict[str, Any]) -> list[float]:
    given = {"name": "live", "about": "", "driver": "locust", "script": {"locust": "hello"}}
    plan = Plan.model_validate({**given, "phases": list(phases), "slo": []})
    run = SimpleNamespace(plan=plan, testid="t", prometheus=Counts(""), influxdb=None)
    return [gauge.value for gauge in LiveRun(cast(Run, run), 2)._objectives()]


STRICT, LOOSE = ["success >= 99%"], ["success >= 10%"]


@pytest.mark.parametrize(
    ("phases", "shown"),
    [
        ([phase("one", "0s", STRICT)], [0.0]),
        ([phase("warm-up", "0s", LOOSE, judged=False), phase("one", "10s", STRICT)], [0.0]),
        ([phase("one", "0s", LOOSE), phase("two", "10s", LOOSE)], [1.0]),
        # Whose requests failed nobody can say.
        ([phase("one", "0s", LOOSE), phase("two", "10s", STRICT)], []),
        ([phase("one", "0s", [])], [1.0]),
    ],
)
def test_phases_with_objectives_of_their_own_are_judged_by_these(
    phases: list[dict[str, Any]], shown: list[float]
) -> None:
    assert verdict_so_far(*phases) == shown
