"""What the batches of a step say: neighbours that depend on each other, and a rise."""

import numpy as np
import pytest

from spikelab.statistics.batches import Rise, dependence, rise
from spikelab.statistics.shares import judge_share, requests_needed


def test_independent_misses_count_as_what_they_are() -> None:
    random = np.random.default_rng(1)
    found = [dependence(random.binomial(1000, 0.05, 10), [1000] * 10) for _ in range(400)]
    assert np.median(found) < 1.5
    assert np.mean(found) < 1.6


def test_misses_in_one_batch_count_as_few() -> None:
    # All 500 of 10,000 in one of ten batches: hardly more than one event.
    found = dependence([500, *[0] * 9], [1000] * 10)
    assert 10_000 / found < 30
    assert judge_share(500, 10_000, 0.06, found) == "inconclusive"
    assert judge_share(500, 10_000, 0.06) == "pass"


def test_dependence_is_batch_means_variance_over_the_binomial_one() -> None:
    """20 batches of 100 with 0 and 10 misses in turn: their shares' variance is 0.05² · 20 / 19."""
    found = dependence([0, 10] * 10, [100] * 20)
    variance = 0.05**2 * 20 / 19 / 20
    few, many = 1.729133, 1.645616  # t at 95 % with 19 and 1,999 degrees of freedom
    assert found == pytest.approx(variance / (0.05 * 0.95 / 2000) * (few / many) ** 2, rel=1e-4)


@pytest.mark.parametrize(
    ("misses", "requests"),
    [([0] * 10, [100] * 10), ([100] * 10, [100] * 10), ([5, 0, 0], [100] * 3), ([], [])],
)
def test_where_nothing_can_be_seen_requests_are_independent(
    misses: list[float], requests: list[float]
) -> None:
    assert dependence(misses, requests) == 1


def test_no_more_requests_count_as_one_than_there_are() -> None:
    assert dependence([3, 0, 0, 0, 0], [3, 3, 3, 3, 3]) <= 15


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([1, 2, 3, 4, 5], Rise(1, 5)),
        ([1.0] * 10, None),
        ([5, 4, 3, 2, 1, 0], None),
        ([1, 2, 3, 4], None),
        ([3, 1, 4, 1, 5, 9, 2, 6, 5, 3], None),
        ([10, 11, 12, 14, 13, 16, 15, 18, 19, 21], Rise(11, 58 / 3)),
    ],
)
def test_a_rise_is_what_chance_does_not_explain(values: list[float], found: Rise | None) -> None:
    assert rise(values) == found


def test_a_steady_step_rises_in_one_of_a_hundred() -> None:
    random = np.random.default_rng(3)
    rising = sum(rise(random.exponential(1, 10).tolist()) is not None for _ in range(1000))
    assert rising <= 20


@pytest.mark.parametrize(
    ("misses", "requests", "allowed", "needed"),
    [(0, 20, 0.001, 2995), (0, 1, 0.01, 299), (0, 1, 0.05, 59), (0, 5, 0.0, None)],
)
def test_requests_needed_without_a_miss_are_wilks(
    misses: int, requests: int, allowed: float, needed: int | None
) -> None:
    assert requests_needed(misses, requests, allowed) == needed


def test_so_many_requests_as_are_needed_decide() -> None:
    for misses, allowed, verdict in ((4, 0.05, "pass"), (7, 0.05, "fail")):
        needed = requests_needed(misses, 100, allowed)
        assert needed is not None
        assert judge_share(misses / 100 * needed, needed, allowed) == verdict
    # Right at the limit no number does.
    assert requests_needed(5, 100, 0.05) is None
