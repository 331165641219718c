"""locust/lib/pace.py, timing.py and lateness.py: when requests are due, and how late they are."""

import sys

import pytest

from spikelab import paths

sys.path.insert(0, str(paths.ROOT / "locust"))
from lib.pace import Pace
from lib.timing import LATENESS, PARTS, WAITING, Timing


def test_starts_are_a_period_apart_and_the_first_ones_spread() -> None:
    firsts = []
    for _ in range(200):
        pace = Pace()
        first = pace.wait(100.0, 2.0, 2.0, 0.0)
        assert 0 <= first <= 2
        # The answer took 0.5 s: the next start is still a period after the first.
        assert pace.wait(100.0 + first + 0.5, 2.0, 2.0, 0.0) == pytest.approx(1.5)
        firsts.append(first)
    assert min(firsts) < 0.3
    assert max(firsts) > 1.7


def test_users_of_a_ramp_are_drawn_apart_within_their_batch_alone() -> None:
    pace = Pace()
    first = pace.wait(100.0, 5.0, 1.0, 0.0)
    assert 0 <= first <= 1
    assert pace.wait(100.0 + first, 5.0, 1.0, 0.0) == pytest.approx(5.0)


def test_a_late_start_moves_the_later_ones_but_was_due_before() -> None:
    pace = Pace()
    due = 100.0 + pace.wait(100.0, 1.0, 1.0, 0.0)
    # The answer came after 5 s: the next request was due after one, and begins now.
    assert pace.wait(due + 5, 1.0, 1.0, 0.0) == 0
    assert (pace.due, pace.start) == pytest.approx((due + 1, due + 5))
    # Nothing is caught up.
    assert pace.wait(due + 5.2, 1.0, 1.0, 0.0) == pytest.approx(0.8)
    assert pace.due == pytest.approx(due + 6)


def test_nothing_is_due_before_its_phase_has_begun() -> None:
    pace = Pace()
    pace.wait(100.0, 1.0, 1.0, 0.0)
    pace.wait(150.0, 1.0, 1.0, 149.5)
    assert pace.due == 149.5


def test_the_parts_of_a_request_add_up_to_the_time_from_when_it_was_due() -> None:
    timing = Timing(due=10.0)
    timing.begin()
    timing.end(WAITING)
    assert timing.parts[LATENESS] > 0
    assert sum(timing.parts) == pytest.approx(timing.seconds)
    assert len(timing.parts) == len(PARTS)
