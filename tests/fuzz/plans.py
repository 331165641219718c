"""Plans: `./lab run PLAN` takes a file or says in a line what is wrong where."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from spikelab.errors import UsageError
from spikelab.plans.estimate import estimate
from spikelab.plans.load import load_plan
from spikelab.plans.model import Plan
from tests.fuzz.oracle import Check, clear, files, sampled, scratch

_PRESETS = 16
_FILES = 64


@contextmanager
def check_plans() -> Iterator[Check]:
    with scratch() as results:
        path = results / "damaged.yaml"

        def check(data: bytes) -> bool:
            path.write_bytes(data)
            try:
                plan = load_plan(str(path))
                str(estimate(plan))
                if sampled(data, _PRESETS):
                    for preset in plan.presets:
                        load_plan(str(path), preset=preset)
            except UsageError as error:
                clear(error, "damaged.yaml")
                return False
            if sampled(data, _FILES):
                assert files(results) == {path.name: data}
            _can_run(plan)
            return True

        yield check


def _can_run(plan: Plan) -> None:
    """What a driver gets is JSON that it can read."""
    json.loads(json.dumps(plan.model_dump(mode="json")), parse_constant=_no_number)
    for phase in plan.phases:
        assert plan.offered_rate(phase) is None or phase.kind == "rate"
        plan.objectives_of(phase)
    assert plan.users >= 1
    plan.phases_of(2)
    _ = plan.effective_sinks, plan.components, plan.foreign_urls


def _no_number(text: str) -> float:
    raise AssertionError(f"{text} is no JSON")
