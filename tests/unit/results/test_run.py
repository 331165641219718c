"""A run's totals: counts added up over its steps."""

from datetime import timedelta

import pytest

from spikelab.results.run import Step, Totals
from tests.support.records import START, plain_step


def step(begin: float, length: float, completed: int) -> Step:
    started = START + timedelta(seconds=begin)
    times = {"started": started, "ended": started + timedelta(seconds=length)}
    return plain_step(length, **times, requests=completed, completed=completed)


@pytest.mark.parametrize(
    ("steps", "seconds"),
    [
        # One after the other, with a pause of 5 s between them, which does not count.
        ([(0, 10), (15, 10)], 20),
        # The second lies within the first, which the third begins in and outlasts by 5 s.
        ([(0, 20), (5, 5), (15, 10)], 25),
    ],
)
def test_the_rate_is_of_the_time_in_which_any_step_ran(
    steps: list[tuple[float, float]], seconds: float
) -> None:
    totals = Totals.of([step(begin, length, 1000) for begin, length in steps])
    assert totals.completed == 1000 * len(steps)
    assert totals.achieved_rate == pytest.approx(totals.completed / seconds)
