"""Percentiles of a phase's response times, with and without those that got no answer."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spikelab.objectives import QUANTILES, reached_by
from spikelab.statistics.distribution import RANKS, Distribution

TIMES = st.lists(st.floats(1e-6, 60.0), min_size=1, max_size=400)


@given(TIMES)
def test_percentiles_of_all_values_are_numpy_s(seconds: list[float]) -> None:
    found = Distribution.of(seconds)
    for share in (0.0, *QUANTILES.values()):
        wanted = float(np.quantile(seconds, share))
        assert found.percentile_seconds(share) == pytest.approx(wanted, rel=1e-9, abs=1e-9)


def test_given_ranks_are_exact() -> None:
    found = Distribution(1000, [0.0, 0.5, 0.99, 1.0], [0.01, 0.05, 0.2, 3.0])
    for rank, seconds in zip(found.ranks, found.seconds, strict=True):
        assert found.percentile_seconds(rank) == seconds


@pytest.mark.parametrize("missing", [1, 50])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.95, 0.99, 0.999])
def test_a_request_without_an_answer_moves_a_percentile_by_its_own_rank(
    share: float, missing: int
) -> None:
    seconds = np.random.default_rng(1).lognormal(-3, 1, 100_000)
    found = Distribution.of(seconds.tolist())
    moved = found.percentile_seconds(share, of=100_000 + missing)
    infinite = np.append(seconds, [math.inf] * missing)
    # One value of so many: without interpolation, which numpy has not with infinity.
    wanted = float(np.quantile(infinite, share, method="lower"))
    assert moved == pytest.approx(wanted, rel=0.01)


def test_one_drop_in_10_000_moves_no_percentile_to_the_next_printed_one() -> None:
    times = [0.05 + i * 1e-6 for i in range(5_000)] + [0.154 + i * 1e-6 for i in range(4_999)]
    found = Distribution.of(times)
    assert found.percentile_seconds(0.495, of=10_000) == pytest.approx(0.055, rel=0.01)
    for share in (0.4, 0.9, 0.95, 0.99, 0.999):
        with_it = found.percentile_seconds(share, of=10_000)
        assert with_it == pytest.approx(found.percentile_seconds(share), rel=0.01)


@given(st.integers(0, 3000), st.integers(0, 60))
def test_a_percentile_is_infinite_where_a_count_of_misses_says_so(good: int, missing: int) -> None:
    found = Distribution.of([0.1] * good)
    reached = reached_by(good, good + missing)
    for key, share in QUANTILES.items():
        if good + missing:
            finite = found.percentile_seconds(share, of=good + missing) < math.inf
            assert finite == (key in reached)


def test_nothing_asked_has_no_percentile() -> None:
    assert math.isnan(Distribution().percentile_seconds(0.5))
    assert Distribution().percentile_seconds(0.5, of=3) == math.inf
    assert Distribution.of([0.3]).percentile_seconds(0.99) == 0.3


@given(st.lists(TIMES, min_size=1, max_size=4))
def test_merged_ones_have_the_rank_of_all_values(parts: list[list[float]]) -> None:
    merged = Distribution.merged([Distribution(), *(Distribution.of(each) for each in parts)])
    everything = [time for part in parts for time in part]
    assert merged.count == len(everything)
    assert merged.percentile_seconds(0) == min(everything)
    assert merged.percentile_seconds(1) == max(everything)
    assert Distribution.merged([merged]) == merged


def test_workers_merge_into_the_distribution_of_all() -> None:
    random = np.random.default_rng(2)
    fast, slow = random.lognormal(-4, 0.5, 30_000), random.lognormal(-2, 0.5, 10_000)
    merged = Distribution.merged([Distribution.of(each.tolist()) for each in (fast, slow)])
    for share in QUANTILES.values():
        wanted = float(np.quantile(np.concatenate((fast, slow)), share))
        assert merged.percentile_seconds(share) == pytest.approx(wanted, rel=0.01)


def test_nothing_merged_is_nothing() -> None:
    assert Distribution.merged([]) == Distribution.merged([Distribution()]) == Distribution()


def test_one_request_of_10_000_lies_between_neighbouring_ranks() -> None:
    assert RANKS[0] == 0
    assert RANKS[-1] == 1
    assert all(below < above for below, above in itertools.pairwise(RANKS))
    assert {0.5, 0.9, 0.95, 0.99, 0.999, 0.9999} <= set(RANKS)


@pytest.mark.parametrize(
    ("count", "ranks", "seconds"),
    [
        (0, [0.0, 1.0], [0.1, 0.2]),
        (2, [], []),
        (2, [0.0, 1.0], [0.1]),
        (2, [0.1, 1.0], [0.1, 0.2]),
        (2, [0.0, 0.9], [0.1, 0.2]),
        (2, [0.0, 1.0], [0.2, 0.1]),
        (3, [0.0, 0.6, 0.5, 1.0], [0.1, 0.2, 0.3, 0.4]),
    ],
)
def test_what_is_none_is_refused(count: int, ranks: list[float], seconds: list[float]) -> None:
    with pytest.raises(ValueError, match="distribution"):
        Distribution(count, ranks, seconds)


def test_more_values_than_requests_are_refused() -> None:
    with pytest.raises(ValueError, match="more values"):
        Distribution.of([0.1, 0.2]).percentile_seconds(0.5, of=1)
