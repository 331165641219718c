"""What every bench does first: it finds a rate that the machine carries, and warms up."""

from collections.abc import Iterator

import pytest

from bench.pairs import PairSide, carried_rate, warm_up


def side(*figures: float) -> PairSide:
    given: Iterator[float] = iter(figures)
    return PairSide("a", lambda: next(given))


def test_a_rate_that_is_carried_is_taken() -> None:
    assert carried_rate(5000, lambda rate: True) == 5000


@pytest.mark.parametrize(("most", "taken"), [(4999, 3200), (3700, 2500), (10, 7), (1, 1)])
def test_a_machine_that_carries_less_is_given_less(most: int, taken: int) -> None:
    tried: list[int] = []

    def starts(rate: int) -> bool:
        tried.append(rate)
        return rate <= most

    assert carried_rate(5000 if most > 1000 else 2 * most, starts) == taken
    assert taken < tried[-1] or taken == 1


def test_a_target_that_answers_nothing_ends_the_search() -> None:
    with pytest.raises(RuntimeError, match="is the target up"):
        carried_rate(5000, lambda rate: False)


def test_runs_warm_up_until_two_agree(capsys: pytest.CaptureFixture[str]) -> None:
    assert warm_up([side(60, 95, 100, 101)])
    assert "warm after 4 runs" in capsys.readouterr().out


def test_each_side_has_to_agree_with_itself() -> None:
    assert warm_up([side(10, 10, 10), side(50, 100, 101)])


def test_what_never_agrees_is_not_steady(capsys: pytest.CaptureFixture[str]) -> None:
    assert not warm_up([side(*[100, 110] * 4)])
    assert "not steady" in capsys.readouterr().out
