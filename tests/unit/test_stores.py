"""Gaps in what Prometheus recorded, and waves in the times of answers."""

from collections.abc import Sequence
from random import Random

import pytest

from spikelab.measure import waves
from spikelab.stores import Prometheus, between, gaps, inside


@pytest.mark.parametrize(
    ("beats", "expected"),
    [
        ([99.4, 100.4, 101.4, 102.4, 103.4, 104.4], []),
        ([99.4, 100.4, 103.4, 104.4], [(100.4, 103.4)]),
        ([99.4, 100.4, 101.4], [(101.4, 104)]),
        ([90.4, 103.4, 104.4], [(100, 103.4)]),
        ([], [(100, 104)]),
    ],
    ids=["none", "in between", "to the end", "from before", "all"],
)
def test_gaps_lie_between_beats(
    beats: Sequence[float], expected: list[tuple[float, float]]
) -> None:
    assert between(beats, 100, 105) == expected


class Beats(Prometheus):
    """One that has every beat and, as Prometheus does, answers with 11,000 points at most."""

    def values(self, expression: str, first: float, last: float, step: float) -> dict[int, float]:
        assert (last - first) / step < 11_000
        return {second: float(second) for second in range(int(first), int(last) + 1)}


def test_gaps_of_a_run_of_hours_are_found() -> None:
    assert gaps(Beats(""), 100, 100 + 8 * 3600) == []


def test_a_step_is_unknown_when_all_of_it_lies_in_a_gap() -> None:
    hole = [(100.4, 103.4)]
    moments = [moment for moment in range(99, 106) if inside(moment, 1, hole)]
    assert moments == [102, 103]


def test_five_waves_of_200_five_seconds_apart() -> None:
    noise = Random(7)
    times = [5 * wave + noise.uniform(0, 0.4) for wave in range(1, 6) for _ in range(200)]
    noise.shuffle(times)
    found = waves(times, start_spread_seconds=0.4)
    assert [wave.answers for wave in found] == [200] * 5
    assert [round(wave.at_seconds) for wave in found] == [5, 10, 15, 20, 25]


def test_waves_stay_apart_when_the_start_takes_most_of_the_service_time() -> None:
    noise = Random(7)
    times = [5 * wave + noise.uniform(0, 3.8) for wave in range(1, 4) for _ in range(1000)]
    assert [wave.answers for wave in waves(times, 3.8)] == [1000] * 3


def test_a_user_whose_start_was_late_stays_in_its_wave() -> None:
    times = [5 * wave + late for wave in (1, 2) for late in (0.0, *[0.4] * 199)]
    assert [wave.answers for wave in waves(times, start_spread_seconds=0.41)] == [200, 200]


def test_no_answer_makes_no_wave() -> None:
    assert waves([], 0.0) == []
