"""Which of the tested rates count as held."""

import pytest

from spikelab.experiments.sweep import by_variant, held_rates
from spikelab.objectives import Verdict
from spikelab.results.run import Step
from tests.unit.records import plain_step


def step(
    rate: float | None, verdict: Verdict, variant: str | None = "on", started_share: float = 1.0
) -> Step:
    started_rate = None if rate is None else round(rate * started_share, 6)
    return plain_step(rate=rate, variant=variant, started_rate=started_rate, verdict=verdict)


def judged(*steps: Step) -> tuple[object, object, list[float], list[float]]:
    answer = held_rates(by_variant(steps)["on"])
    return (
        answer.highest_passing_rate,
        answer.lowest_failing_rate,
        answer.inconclusive,
        answer.not_reached,
    )


def test_all_held() -> None:
    assert judged(step(200, "pass"), step(400, "pass")) == (400, None, [], [])


def test_all_failed() -> None:
    assert judged(step(400, "fail"), step(200, "fail")) == (None, 200, [], [])


def test_a_rate_above_one_that_was_not_held_does_not_count() -> None:
    steps = (step(200, "pass"), step(400, "fail"), step(600, "pass"))
    assert judged(*steps) == (200, 400, [], [])


def test_repeats_that_disagree_are_inconclusive_and_stop_what_is_held() -> None:
    steps = (step(200, "pass"), step(400, "pass"), step(400, "fail"), step(600, "pass"))
    assert judged(*steps) == (200, None, [400], [])


def test_a_repeat_that_decided_nothing_makes_its_rate_inconclusive() -> None:
    assert judged(step(200, "pass"), step(200, "inconclusive")) == (None, None, [200], [])


def test_a_rate_that_one_repeat_did_not_start_is_not_reached() -> None:
    steps = (step(200, "pass"), step(400, "pass"), step(400, "fail", started_share=0.979))
    assert judged(*steps) == (200, None, [], [400])


@pytest.mark.parametrize("rate", [7, 33.3, 850, 1000, 12345])
def test_98_percent_is_enough(rate: float) -> None:
    assert judged(step(rate, "pass", started_share=0.98))[0] == rate
    assert judged(step(rate, "pass", started_share=0.9799))[3] == [rate]


def test_variants_are_judged_apart_and_closed_loops_not_at_all() -> None:
    found = by_variant(
        [step(2, "pass", "b"), step(1, "pass", "a"), step(1, "fail", None), step(None, "pass")]
    )
    assert list(found) == ["", "a", "b"]
    assert held_rates(found[""]).lowest_failing_rate == 1
