"""How long a sweep still takes."""

from spikelab.experiments.session import TimeLeft


def test_the_time_left_is_learned_from_the_runs() -> None:
    left = TimeLeft()
    assert left.seconds([10, 20]) == 30
    left.took(10, 14)
    left.took(20, 22)
    assert left.seconds([10, 20]) == 36
    left.took(100, 0)
    assert left.seconds([1]) == 0
