"""Objectives as shares, by exact binomial bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom

from spikelab.objectives import parse_objective
from spikelab.statistics.shares import judge_share, requests_needed, share_bounds

# The two-sided 90 % limits of Clopper and Pearson, whose ends are one-sided 95 % bounds.
# 4 of 20: 0.0714 and 0.4010; 0 of 10: the upper one is 1 - 0.05^(1/10).
PUBLISHED = [(4, 20, 0.0714, 0.4010), (0, 10, 0.0, 0.2589), (10, 10, 0.7411, 1.0)]


@pytest.mark.parametrize(("misses", "requests", "low", "high"), PUBLISHED)
def test_the_bounds_are_clopper_and_pearsons(
    misses: int, requests: int, low: float, high: float
) -> None:
    assert share_bounds(misses, requests) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 100_000), st.data())
def test_the_bounds_are_quantiles_of_the_beta_distribution(
    requests: int, data: st.DataObject
) -> None:
    misses = data.draw(st.integers(0, requests))
    low = beta.ppf(0.05, misses, requests - misses + 1) if misses else 0.0
    high = beta.ppf(0.95, misses + 1, requests - misses) if misses < requests else 1.0
    assert share_bounds(misses, requests) == pytest.approx((low, high), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "share"),
    [("success >= 99.9%", 0.001), ("p95 < 1s", 0.05), ("p99.9 <= 250ms", 0.001)],
)
def test_an_objective_allows_a_share_of_misses(text: str, share: float) -> None:
    assert parse_objective(text).allowed_share == share


@pytest.mark.parametrize(("allowed", "requests"), [(0.01, 299), (0.001, 2995), (0.05, 59)])
def test_so_many_requests_prove_an_objective_without_a_miss(allowed: float, requests: int) -> None:
    assert judge_share(0, requests, allowed) == "pass"
    assert judge_share(0, requests - 1, allowed) == "inconclusive"


def test_an_objective_without_any_miss_can_only_fail() -> None:
    assert judge_share(0, 1_000_000, 0.0) == "inconclusive"
    assert judge_share(1, 1_000_000, 0.0) == "fail"


@pytest.mark.parametrize("allowed", [0.5, 0.05, 0.001])
def test_so_many_as_are_needed_without_a_miss_decide_where_neighbours_count_as_one(
    allowed: float,
) -> None:
    needed = requests_needed(0, 10, allowed, 3.7)
    assert needed is not None
    assert judge_share(0, needed, allowed, 3.7) == "pass"
    assert judge_share(0, needed - 1, allowed, 3.7) == "inconclusive"


def test_nothing_asked_decides_nothing() -> None:
    assert judge_share(0, 0, 0.05) == "inconclusive"


@given(st.integers(1, 20_000), st.floats(0.001, 0.5))
def test_more_misses_never_make_it_better(requests: int, allowed: float) -> None:
    order = {"pass": 0, "inconclusive": 1, "fail": 2}
    counts = sorted({0, 1, int(requests * allowed), requests // 2, requests})
    grades = [order[judge_share(min(count, requests), requests, allowed)] for count in counts]
    assert grades == sorted(grades)


@pytest.mark.parametrize("requests", [500, 3000, 8000])
@pytest.mark.parametrize("allowed", [0.05, 0.001])
def test_a_false_pass_or_fail_is_at_most_five_percent(requests: int, allowed: float) -> None:
    # Every possible count, by its exact chance, with the true share right at the limit.
    verdicts = [judge_share(count, requests, allowed) for count in range(int(requests * 0.08))]
    chance = binom.pmf(np.arange(len(verdicts)), requests, allowed)
    for wrong in ("pass", "fail"):
        assert sum(chance[i] for i, one in enumerate(verdicts) if one == wrong) <= 0.05
