"""What so many pairs can decide, against published tables and simulation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.verdicts import Arms, verdicts
from spikelab.statistics.pairs import (
    Ratio,
    advise,
    chances,
    pairs_needed,
    ratio_of,
    smallest_difference,
)


@pytest.mark.parametrize(
    ("effect", "pairs"),
    # Paired t test, 5 % two-sided, power 80 % (G*Power; Cohen 1988, table 2.4.1).
    [(0.2, 199), (0.5, 34), (0.8, 15)],
)
def test_the_smallest_difference_is_cohens(effect: float, pairs: int) -> None:
    def told(count: int) -> float:
        return math.log(smallest_difference(1.0, count))

    assert told(pairs) <= effect < told(pairs - 1)


def test_the_chance_of_equivalence_is_the_published_one() -> None:
    # PowerTOST's first example: a 2x2 crossover with CV 30 %, true ratio 0.95, limits 0.80 to
    # 1.25, 40 subjects: power 0.815845.
    error = math.sqrt(math.log1p(0.3**2) * 2 / 40)
    found = chances(math.log(0.95), math.log(1.25), error, 38, confidence=0.9)
    assert found.equivalent == pytest.approx(0.815845, abs=2e-5)


@pytest.mark.parametrize("change", [1.0, 1.03, 1.05, 1.1])
def test_the_chances_are_those_of_simulated_comparisons(change: float) -> None:
    noise, pairs, comparisons = 0.03, 8, 2000
    found = verdicts(Arms(noise, change), pairs, comparisons, np.random.default_rng(2))
    error = noise * math.sqrt(2 / pairs)
    predicted = chances(math.log(change), math.log(1.05), error, pairs - 1)
    observed = [found[name] / comparisons for name in ("equivalent", "worse", "better")]
    wanted = [predicted.equivalent, predicted.higher, predicted.lower]
    assert observed == pytest.approx(wanted, abs=3.3 * math.sqrt(0.25 / comparisons))


@pytest.mark.parametrize(("deviation", "pairs"), [(0.05, 16), (0.1, 52), (0.2, 198)])
def test_with_the_pairs_needed_the_verdict_is_right_wherever_the_ratio_lies(
    deviation: float, pairs: int
) -> None:
    assert pairs_needed(deviation, 0.05) == pairs

    def right(log_ratio: float, count: int) -> float:
        error = deviation / math.sqrt(count)
        found = chances(log_ratio, math.log(1.05), error, count - 1)
        return found.equivalent + found.higher

    between = np.linspace(0.001, 0.999, 41) * math.log(1.05)
    assert min(right(log, pairs) for log in between) >= 0.8
    assert min(right(log, pairs - 1) for log in between) < 0.8


@settings(max_examples=15)
@given(st.floats(0.001, 0.3), st.floats(0.02, 0.2))
def test_more_noise_or_a_smaller_margin_needs_more_pairs(deviation: float, margin: float) -> None:
    pairs = pairs_needed(deviation, margin) or math.inf
    assert pairs >= 6
    assert (pairs_needed(deviation * 1.2, margin) or math.inf) >= pairs
    assert (pairs_needed(deviation, margin * 1.2) or math.inf) <= pairs


def test_a_machine_too_loud_for_any_number_of_pairs() -> None:
    assert pairs_needed(1.0, 0.01) is None
    assert advise(Ratio(1, 0.5, 2, 1.9, 6, 1.0), 0.01).more_pairs is None


def test_the_advice_counts_from_the_pairs_there_are() -> None:
    ratio = ratio_of([0.95, 1.06, 1.0, 0.93, 1.07, 1.01])
    advice = advise(ratio, 0.05)
    assert advice.pairs_needed is not None
    assert advice.more_pairs == advice.pairs_needed - 6
    assert advice.smallest_difference == smallest_difference(ratio.log_deviation, 6)
    assert advise(ratio_of([1.0] * 8), 0.05).more_pairs == 0
