"""Comparisons: the interval, the four verdicts, several metrics, how often they are wrong, and what
so many pairs can decide, against published tables and simulation."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, ttest_rel

from bench.comparison_verdicts import Arms, verdicts
from bench.pairs import upper_bound
from spikelab.errors import UsageError
from spikelab.objectives import Verdict, over_repeats
from spikelab.statistics.pairs import (
    FIRST_ERROR,
    TOTAL_ERROR,
    Answer,
    Comparison,
    Metric,
    Pair,
    Ratio,
    advise,
    chances,
    compare,
    error_of,
    error_of_look,
    fewest_pairs,
    holm,
    likely_deviation,
    pairs_needed,
    planned_looks,
    ratio_of,
    smallest_difference,
)


@pytest.mark.parametrize(
    ("verdicts", "needed", "wanted"),
    [
        (["pass", "pass", "pass"], 3, "pass"),
        (["fail", "fail"], 2, "fail"),
        (["pass", "fail", "pass"], 2, "inconclusive"),
        (["pass", "inconclusive", "pass"], 3, "inconclusive"),
        (["pass", "inconclusive", "pass"], 2, "pass"),
        ([], 1, "inconclusive"),
    ],
)
def test_a_verdict_over_repeats_needs_them_to_agree(
    verdicts: list[Verdict], needed: int, wanted: Verdict
) -> None:
    assert over_repeats(verdicts, needed) == wanted


P95 = Metric("p95", better="lower")


THROUGHPUT = Metric("throughput", better="higher")


MIRRORED: dict[Answer, Answer] = {
    "better": "worse",
    "worse": "better",
    "equivalent": "equivalent",
    "inconclusive": "inconclusive",
}


# Student's sleep data (Biometrika 6 (1908)): hours gained by ten patients, published mean
# difference 1.58, t = 4.0621, 95 % interval 0.7001 to 2.4599 (R's help page of t.test).
SLEEP_GAINED = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]


FIGURES = st.one_of(st.none(), st.just(0.0), st.just(math.inf), st.floats(1e-3, 1e3))


SIX = [0.96, 1.02, 0.99, 1.03, 0.98, 1.01]


def one(metric: Metric, pairs: Sequence[Pair], error: float = FIRST_ERROR) -> Comparison:
    return compare(metric, [], {metric.name: pairs}, error)[0]


def by_ratios(metric: Metric, ratios: list[float]) -> Comparison:
    return one(metric, [(2.0, 2.0 * ratio) for ratio in ratios])


def test_the_interval_is_students() -> None:
    result = ratio_of([math.exp(gain) for gain in SLEEP_GAINED])
    logs = [math.log(figure) for figure in (result.mean, result.low, result.high)]
    assert logs == pytest.approx([1.58, 0.7001142, 2.4598858], abs=1e-6)
    assert result.difference_p == pytest.approx(0.002833, abs=1e-6)


def test_the_interval_is_scipy_s() -> None:
    random = np.random.default_rng(1)
    a, b = random.lognormal(size=9), random.lognormal(size=9)
    theirs = ttest_rel(np.log(b), np.log(a))
    ours = ratio_of((b / a).tolist())
    interval = theirs.confidence_interval(0.95)
    assert [ours.low, ours.high] == pytest.approx(np.exp([interval.low, interval.high]))
    assert upper_bound(ours) == pytest.approx(
        math.exp(ttest_rel(np.log(b), np.log(a), alternative="less").confidence_interval(0.95).high)
    )
    assert ours.difference_p == pytest.approx(theirs.pvalue)


@pytest.mark.parametrize("ratios", [[], [1.0], [1.0, 0.0], [1.0, math.inf], [1.0, math.nan]])
def test_what_has_no_interval_is_refused(ratios: list[float]) -> None:
    with pytest.raises(ValueError, match="two positive, finite ratios"):
        ratio_of(ratios)


@pytest.mark.parametrize(
    ("factor", "latency", "throughput"),
    [(1.2, "worse", "better"), (1 / 1.2, "better", "worse"), (1.0, "equivalent", "equivalent")],
)
def test_the_direction_is_the_metrics(factor: float, latency: str, throughput: str) -> None:
    ratios = [factor * ratio for ratio in SIX]
    assert by_ratios(P95, ratios).verdict == latency
    assert by_ratios(THROUGHPUT, ratios).verdict == throughput


def test_a_difference_that_is_certain_but_too_small_to_matter_is_equivalent() -> None:
    tiny = by_ratios(P95, [1.02, 1.021, 1.019, 1.02, 1.022, 1.018])
    assert tiny.ratio is not None
    assert tiny.ratio.low > 1
    assert tiny.verdict == "equivalent"


def test_noise_is_inconclusive_and_not_equivalent() -> None:
    assert by_ratios(P95, [0.7, 1.4, 0.9, 1.2, 0.8, 1.3]).verdict == "inconclusive"


def test_ratios_that_are_all_the_same_have_an_interval_without_width() -> None:
    assert by_ratios(P95, [1.0] * 6).verdict == "equivalent"
    assert by_ratios(P95, [1.5] * 6).verdict == "worse"


@given(st.lists(st.floats(0.5, 2.0), min_size=6, max_size=12), st.floats(0.01, 0.3))
def test_the_verdict_is_where_the_interval_lies(ratios: list[float], margin: float) -> None:
    result = by_ratios(Metric("p95", "lower", margin), ratios)
    assert result.ratio is not None
    low, high = result.ratio.low, result.ratio.high
    if low > 1 / (1 + margin) * 1.000001 and high < (1 + margin) * 0.999999:
        assert result.verdict == "equivalent"
    elif low > 1.000001:
        assert result.verdict in ("worse", "equivalent")
    elif low < 0.999999 and high > 1.000001:
        assert result.verdict in ("inconclusive", "equivalent")


@given(st.lists(st.tuples(FIGURES, FIGURES), min_size=6, max_size=14))
def test_swapping_a_and_b_mirrors_the_verdict(pairs: list[Pair]) -> None:
    there, back = one(P95, pairs), one(P95, [(b, a) for a, b in pairs])
    assert back.verdict == MIRRORED[there.verdict]
    assert back.difference_p == pytest.approx(there.difference_p, abs=1e-9)
    assert one(Metric("p95", "higher"), pairs).verdict == MIRRORED[there.verdict]


@given(st.lists(st.floats(0.5, 2.0), min_size=6, max_size=12), st.floats(1e-3, 1e3))
def test_the_unit_of_a_figure_does_not_matter(ratios: list[float], unit: float) -> None:
    seconds = one(P95, [(1.0, ratio) for ratio in ratios])
    others = one(P95, [(unit, unit * ratio) for ratio in ratios])
    assert others.difference_p == pytest.approx(seconds.difference_p, rel=1e-6)


def test_too_few_pairs_are_refused_with_the_number_needed() -> None:
    with pytest.raises(UsageError, match="5 cannot decide a comparison: it needs at least 6"):
        by_ratios(P95, [1.5] * 5)


def test_the_fewest_pairs_are_those_of_the_sign_flip_test() -> None:
    assert [fewest_pairs(metrics) for metrics in (1, 2, 40)] == [6, 7, 11]


def test_a_missing_figure_leaves_its_pair_out() -> None:
    ratios: list[Pair] = [(1.0, 1.2 * ratio) for ratio in SIX]
    result = one(P95, [(None, 1.0), *ratios, (1.0, None)])
    assert result.ratio == one(P95, ratios).ratio
    assert result.verdict == "worse"


def test_too_many_missing_figures_are_inconclusive_and_say_so() -> None:
    result = one(P95, [(1.0, 2.0)] * 5 + [(None, 1.0)] * 3)
    assert result.verdict == "inconclusive"
    assert result.reason == "only 5 pairs have both figures: 6 are needed"
    assert result.ratio is not None


def test_zero_and_infinity_have_no_ratio_but_an_order() -> None:
    spoiled = one(P95, [(0.2, math.inf)] * 6)
    assert (spoiled.verdict, spoiled.ratio) == ("worse", None)
    assert spoiled.difference_p == pytest.approx(2 / 2**6)
    assert one(Metric("failures", "lower"), [(3.0, 0.0)] * 5 + [(0.0, 2.0)]).verdict == (
        "inconclusive"
    )
    nothing = one(Metric("failures", "lower"), [(0.0, 0.0)] * 9)
    assert nothing.verdict == "inconclusive"
    assert nothing.reason is not None
    assert "the same in 9" in nothing.reason


@pytest.mark.parametrize("figure", [-1.0, math.nan])
def test_a_figure_that_cannot_be_is_refused(figure: float) -> None:
    with pytest.raises(ValueError, match="negative or not a number"):
        one(P95, [(1.0, 1.0)] * 6 + [(1.0, figure)])


def test_a_margin_must_allow_something() -> None:
    with pytest.raises(ValueError, match="above 0"):
        Metric("p95", "lower", margin=0)


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        ([0.01, 0.02, 0.03, 0.04, 0.05], [0.05, 0.08, 0.09, 0.09, 0.09]),  # R: p.adjust(, "holm")
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.7, 0.6], [1.0, 1.0]),
        ([], []),
    ],
)
def test_holm_s_adjusted_p_values(p_values: list[float], adjusted: list[float]) -> None:
    assert holm(p_values) == pytest.approx(adjusted)


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_rejects_what_the_stepwise_procedure_does(p_values: list[float]) -> None:
    rejected = set()
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[index] * (len(p_values) - rank) > 0.05:
            break
        rejected.add(index)
    assert {i for i, p in enumerate(holm(p_values)) if p <= 0.05} == rejected


def test_secondary_metrics_share_their_five_percent_and_the_primary_one_has_its_own() -> None:
    slightly = [1.02, 1.12, 1.01, 1.15, 1.03, 1.2, 1.0]
    names = [f"metric {number}" for number in range(5)]
    figures: list[Pair] = [(1.0, ratio) for ratio in slightly]
    secondary = [Metric(name, "lower") for name in names]
    first, *rest = compare(P95, secondary, dict.fromkeys(["p95", *names], figures), TOTAL_ERROR)
    assert 0.01 < first.difference_p < 0.05
    assert first.verdict == "worse"
    assert {one.verdict for one in rest} == {"inconclusive"}
    assert {one.ratio for one in rest} == {first.ratio}


COMPARISONS = 2000


@pytest.mark.parametrize("noise", [0.02, 0.05, 0.2])
@pytest.mark.parametrize("tails", [None, 3])
def test_equal_arms_are_called_different_in_at_most_five_percent(
    noise: float, tails: int | None
) -> None:
    found = verdicts(Arms(noise, tails=tails), 8, COMPARISONS, np.random.default_rng(1))
    assert found["better"] + found["worse"] <= binom.ppf(0.999, COMPARISONS, 0.05)


def test_a_difference_of_ten_percent_is_found() -> None:
    found = verdicts(Arms(0.03, change=1.1), 8, 500, np.random.default_rng(1))
    assert found["worse"] >= 0.98 * 500
    assert not found["better"]


def test_arms_that_differ_by_the_margin_are_seldom_called_equivalent() -> None:
    found = verdicts(Arms(0.02, change=1.05), 8, COMPARISONS, np.random.default_rng(1))
    assert found["equivalent"] <= binom.ppf(0.999, COMPARISONS, 0.025)


@pytest.mark.parametrize(
    ("effect", "pairs"),
    # Paired t test, 5 % two-sided, power 80 % (G*Power; Cohen 1988, table 2.4.1).
    [(0.2, 199), (0.5, 34), (0.8, 15)],
)
def test_the_smallest_difference_is_cohens(effect: float, pairs: int) -> None:
    def told(count: int) -> float:
        return math.log(smallest_difference(1.0, count, TOTAL_ERROR))

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


@pytest.mark.parametrize(("deviation", "pairs"), [(0.05, 17), (0.1, 58), (0.2, 221)])
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
    assert advise(Ratio(1, 0.5, 2, 6, 1.0), 0.01, 0.04, 0.005).more_pairs is None


def test_the_advice_is_for_a_new_comparison_with_what_error_it_may_have() -> None:
    ratio = ratio_of([0.95, 1.06, 1.0, 0.93, 1.07, 1.01])
    advice = advise(ratio, 0.05, 0.04, 0.005)
    assert advice.pairs_needed is not None
    assert advice.more_pairs == advice.pairs_needed - 6
    assert advice.smallest_difference == smallest_difference(ratio.log_deviation, 6, 0.04)
    likely = likely_deviation(ratio.log_deviation, 6)
    assert advice.pairs_needed == pairs_needed(likely, 0.05, 0.005)
    assert advice.pairs_needed > (pairs_needed(likely, 0.05, 0.04) or 0)
    assert advise(ratio_of([1.0] * 8), 0.05, 0.04, 0.005).more_pairs == 0


def test_the_true_deviation_is_below_the_likely_one_in_80_percent() -> None:
    random = np.random.default_rng(1)
    found = [likely_deviation(float(random.normal(size=6).std(ddof=1)), 6) for _ in range(2000)]
    assert sum(each >= 1 for each in found) / 2000 == pytest.approx(0.8, abs=0.03)


def test_all_looks_at_a_question_together_stay_below_five_percent() -> None:
    errors = [error_of(earlier) for earlier in range(4)]
    assert errors == pytest.approx([0.04, 0.004, 0.002, 0.001])
    assert sum(error_of(earlier) for earlier in range(60)) <= TOTAL_ERROR
    looks = planned_looks(16, 2)
    assert looks == [8, 16]
    assert sum(error_of_look(0.04, looks, look) for look in range(2)) == pytest.approx(0.04)
    assert planned_looks(6, 1) == [6]
    with pytest.raises(UsageError, match="the first would have 5, and needs 6: at least 18 pairs"):
        planned_looks(15, 3)


def test_a_later_look_needs_more_to_decide() -> None:
    slightly: list[Pair] = [(1.0, ratio) for ratio in (1.05, 1.12, 1.02, 1.15, 1.03, 1.2, 1.01)]
    assert one(P95, slightly, error_of(0)).verdict == "worse"
    later = one(P95, slightly, error_of(1))
    assert later.verdict == "inconclusive"
    assert later.ratio is not None
    assert later.ratio.low < 1
    # The interval is that of the look.
    assert one(P95, [(1.0, math.inf)] * 6, error_of(1)).verdict == "inconclusive"
