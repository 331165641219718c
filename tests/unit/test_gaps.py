"""Time in which Prometheus recorded nothing."""

from collections.abc import Sequence

import pytest

from spikelab.stores import between, inside


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


def test_a_step_is_unknown_when_all_of_it_lies_in_a_gap() -> None:
    hole = [(100.4, 103.4)]
    moments = [moment for moment in range(99, 106) if inside(moment, 1, hole)]
    assert moments == [102, 103]
