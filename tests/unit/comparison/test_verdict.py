"""Verdicts on paired runs: which figures, which pairs, what is left out, which place decides."""

import math
from dataclasses import replace
from typing import Any

import pytest

from spikelab.comparison.experiment import QuestionOptions
from spikelab.comparison.pairing import arm_of_experiment, arm_of_run
from spikelab.comparison.verdict import (
    METRICS,
    ComparisonQuestion,
    _side,
    called,
    compare_arms,
    overall,
    with_noise,
)
from spikelab.errors import UsageError
from spikelab.plans.studies import CompareBy
from spikelab.results.comparison import ComparisonRecord
from spikelab.results.run import Latency, StepGenerator
from tests.support.comparison_runs import arms, record, runs, step

SIX = [0.100, 0.102, 0.099, 0.101, 0.098, 0.103]


SLOWER = [1.2 * seconds * (1 + 0.001 * place) for place, seconds in enumerate(SIX)]


P95 = ComparisonQuestion("p95", ["p50", "throughput"])


MIRRORED = {"better": "worse", "worse": "better"}


def test_a_slower_b_is_worse_and_a_slower_a_makes_b_better() -> None:
    a, b = arms(runs(SIX, "a"), runs(SLOWER, "b"))
    there, back = compare_arms(a, b, P95), compare_arms(b, a, P95)
    assert (there.verdict, back.verdict) == ("worse", "better")
    assert there.interleaved is True
    for one, other in zip(there.results, back.results, strict=True):
        assert MIRRORED.get(str(one.verdict), one.verdict) == other.verdict
        assert one.ratio == pytest.approx(1 / (other.ratio or 0))
        assert one.low == pytest.approx(1 / (other.high or 0))
        assert (one.a, one.b) == (other.b, other.a)
    assert there.deciding is not None
    assert there.deciding.ratio == pytest.approx(1.2, rel=0.01)
    assert there.summary.startswith("worse: p95 of b is ×1.203 that of a (1.200–")
    # Throughput is the same on both sides.
    assert there.results[2].verdict == "equivalent"


def test_pairs_are_of_one_repeat_whatever_the_order_of_the_records() -> None:
    a, b = arms(runs(SIX, "a"), list(reversed(runs(SLOWER, "b"))))
    pairs = compare_arms(a, b, P95).results[0].pairs
    assert [pair.repeat for pair in pairs] == [1, 2, 3, 4, 5, 6]
    assert [pair.b for pair in pairs] == SLOWER


def test_a_run_that_is_no_measurement_takes_its_pair_along_and_is_named() -> None:
    first, second = runs([*SIX, 0.1, 0.1], "a"), runs([*SLOWER, 9.9, 9.9], "b")
    second[6].valid, second[6].reasons = False, ["the target died"]
    second[7].steps[0].generator = StepGenerator(limited=True)
    result = compare_arms(*arms(first, second), P95)
    assert (result.verdict, len(result.results[0].pairs)) == ("worse", 6)
    assert [each.repeat for each in result.left_out] == [7, 8]
    assert f"B, {second[6].testid}: invalid: the target died" in result.left_out[0].reason
    assert "the driver was the limit" in result.left_out[1].reason


def test_a_repeat_that_one_side_lacks_is_left_out() -> None:
    result = compare_arms(*arms(runs(SIX, "a"), runs(SLOWER[:5], "b")), P95)
    assert result.verdict == "inconclusive"
    assert result.left_out[0].reason == "B has no such run"
    assert "only 5 pairs have both figures" in result.summary


def test_too_few_repeats_are_refused_with_the_number_needed() -> None:
    with pytest.raises(UsageError, match="at least 6"):
        compare_arms(*arms(runs(SIX[:5], "a"), runs(SLOWER[:5], "b")), P95)


def test_one_run_a_side_has_figures_and_no_verdict() -> None:
    ours, theirs = runs([0.1], "a", rate=100)[0], runs([0.2], "b", rate=200)[0]
    result = compare_arms(arm_of_run(ours), arm_of_run(theirs), P95)
    assert (result.verdict, result.deciding) == (None, None)
    assert (result.results[0].ratio, result.results[0].low) == (pytest.approx(2), None)
    assert "no verdict: two single runs" in result.summary


def test_a_percentile_that_failures_reach_is_infinite_and_judged_by_order() -> None:
    a, b = arms(runs(SIX, "a"), runs([None] * 6, "b"))
    result = compare_arms(a, b, P95)
    first = result.results[0]
    assert (first.b, first.ratio, first.verdict) == ("infinite", None, "worse")
    assert first.reason is not None
    assert first.confidence == "worse (by order alone, 6 pairs)"
    # As a file, where JSON has no infinity.
    assert ComparisonRecord.model_validate_json(result.model_dump_json(by_alias=True)) == result


def test_of_several_places_one_has_to_be_named_to_decide() -> None:
    def swept(figures: list[float], name: str) -> list[Any]:
        return [*runs(figures, name, rate=400), *runs([2 * f for f in figures], name, rate=600)]

    a, b = arms(swept(SIX, "a"), swept(SLOWER, "b"))
    with pytest.raises(UsageError, match=r"2 places.*--at rate=400\|600"):
        compare_arms(a, b, P95)
    with pytest.raises(UsageError, match=r"--at rate=500: A and B were not both run there"):
        compare_arms(a, b, replace(P95, at={"rate": 500}))
    result = compare_arms(a, b, QuestionOptions(at=["rate=600.0"]).of(None))
    assert result.at == {"rate": 600}
    assert "p95 of b at rate=600 is ×1.20" in result.summary
    assert [each.primary for each in result.results] == [True] + 7 * [False]
    # Holm: seven secondary cells share what the primary has alone.
    assert result.results[4].metric == "p95"
    assert (result.results[4].difference_p or 0) > (result.results[0].difference_p or 1)


def test_where_the_ready_plan_decides_says_nothing_of_runs_without_a_sweep() -> None:
    a, b = arms(runs(SIX, "a"), runs(SLOWER, "b"))
    declared = replace(P95, at={"rate": 600}, at_asked=False)
    assert (compare_arms(a, b, declared).verdict, compare_arms(a, b, declared).at) == ("worse", {})
    with pytest.raises(UsageError, match="--at rate=600: A and B were not both run there"):
        compare_arms(a, b, replace(P95, at={"rate": 600}))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        # Of schema 1, which has no reasons.
        ({}, "behind its schedule"),
        ({"why": "it", "started_rate": 97, "scheduled": 10**6}, "behind its schedule"),
        ({"why": "it", "dropped": 1, "generator": StepGenerator(limited=None)}, "nobody saw"),
    ],
)
def test_a_driver_behind_its_schedule_measured_another_load(
    changes: dict[str, Any], reason: str
) -> None:
    second = runs([*SLOWER, 9.9], "b")
    step = second[6].steps[0]
    second[6].steps = [step.model_copy(update={"verdict": "inconclusive", **changes})]
    result = compare_arms(*arms(runs([*SIX, 0.1], "a"), second), P95)
    assert [each.repeat for each in result.left_out] == [7]
    assert reason in result.left_out[0].reason


def test_a_step_with_too_few_requests_for_its_objective_is_compared() -> None:
    second = runs(SLOWER, "b")
    for each in second:
        each.steps[0].verdict = "inconclusive"
        each.steps[0].why = "too few requests to decide p99.9 < 1s: 2,995 needed"
    result = compare_arms(*arms(runs(SIX, "a"), second), P95)
    assert (result.verdict, result.left_out) == ("worse", [])


def test_runs_are_not_compared_with_themselves() -> None:
    same = runs(SIX, "few")
    whole, few = arm_of_experiment("one", same), arm_of_experiment("one", same, "few")
    with pytest.raises(UsageError, match="have runs in common"):
        compare_arms(whole, few, P95)


def test_one_variant_of_two_experiments_is_called_by_its_experiment() -> None:
    first, second = runs(SIX, "few"), runs(SLOWER, "few")
    a, b = arm_of_experiment("one", first, "few"), arm_of_experiment("two", second, "few")
    assert compare_arms(a, b, P95).results[0].ratio == pytest.approx(1.203, abs=1e-3)
    assert (called(_side(a), _side(b)), called(_side(b), _side(a))) == ("one:few", "two:few")


def test_phases_are_places_too() -> None:
    def two(figures: list[float], name: str) -> list[Any]:
        return [
            record(*(step(p95, name=phase, variant=name, repeat=n) for phase in ("low", "high")))
            for n, p95 in enumerate(figures, 1)
        ]

    result = compare_arms(
        *arms(two(SIX, "a"), two(SLOWER, "b")), replace(P95, at={"phase": "high"})
    )
    assert (result.verdict, result.at) == ("worse", {"phase": "high"})


def test_two_experiments_have_figures_and_a_ratio_and_no_verdict() -> None:
    a = arm_of_experiment("one", runs(SIX, "x"), None, "abba")
    b = arm_of_experiment("two", runs(SLOWER, "x"), None, "abba")
    result = compare_arms(a, b, P95)
    assert (result.verdict, result.deciding, result.interleaved) == (None, None, False)
    assert result.results[0].ratio == pytest.approx(1.203, abs=1e-3)
    assert (result.results[0].low, result.results[0].verdict) == (None, None)
    assert result.summary.startswith("no verdict: A's and B's runs were not taken in turn")


def test_an_experiment_of_several_variants_is_compared_by_variant() -> None:
    many = arm_of_experiment("one", [*runs(SIX, "x"), *runs(SIX, "y")])
    single = arm_of_experiment("two", runs(SIX, "x"))
    with pytest.raises(UsageError, match="say which one: one:x, one:y"):
        compare_arms(many, single, P95)
    other = arm_of_experiment("three", [*runs(SIX, "x"), *runs(SIX, "y")])
    result = compare_arms(many, other, P95)
    assert [each.place for each in result.results[::3]] == [{"variant": "x"}, {"variant": "y"}]


def test_inconclusive_says_what_would_help() -> None:
    noisy = [0.08, 0.13, 0.09, 0.12, 0.08, 0.11]
    result = compare_arms(*arms(runs(SIX, "a"), runs(noisy, "b")), P95)
    assert result.verdict == "inconclusive"
    assert result.deciding is not None
    advice = result.deciding.advice
    assert advice is not None
    assert advice.pairs_needed == 6 + (advice.more_pairs or 0)
    assert f"a new comparison with {advice.pairs_needed} pairs" in result.summary
    assert f"a difference of {advice.smallest_difference - 1:.1%}" in result.summary


def test_identical_arms_show_the_noise() -> None:
    again = [f * (1 + 0.01 * (-1) ** place) for place, f in enumerate(SIX)]
    result = with_noise(compare_arms(*arms(runs(SIX, "a"), runs(again, "b")), P95))
    assert result.noise is not None
    assert result.noise[0].log_deviation == pytest.approx(0.01095, rel=0.01)
    assert result.noise[0].pairs_needed == 6
    assert "identical arms were found equivalent" in result.summary


def test_the_worst_comparison_decides() -> None:
    worse = compare_arms(*arms(runs(SIX, "a"), runs(SLOWER, "b")), P95)
    better = compare_arms(*arms(runs(SLOWER, "a"), runs(SIX, "b")), P95)
    assert overall([better, worse]) == "worse"
    assert overall([better]) == "better"
    assert overall([]) is None


def test_a_percentile_is_infinite_only_where_failures_reach_it() -> None:
    some = step(failures=100, latency_with_failures_seconds=Latency(p50=0.1, p90=0.2))
    assert METRICS["p50"].of(some) == 0.1
    assert METRICS["p95"].of(some) == math.inf
    # A report that does not print p99.9.
    printed = Latency(p50=0.1, p90=0.2, p95=0.3, p99=0.4)
    unprinted = step(latency_seconds=printed, latency_with_failures_seconds=printed)
    assert METRICS["p99.9"].of(unprinted) is None
    assert METRICS["p99"].of(unprinted) == 0.4


def test_a_run_without_a_good_answer_is_not_left_out_of_the_mean() -> None:
    """The six runs of B that answered at all took as long as A's."""
    a, b = arms(runs([*SIX, 0.1, 0.1], "a"), runs([*SIX, None, None], "b"))
    result = compare_arms(a, b, ComparisonQuestion("mean"))
    assert (result.verdict, result.results[0].b) == ("inconclusive", "infinite")
    assert len(result.results[0].pairs) == 8


def test_a_failed_answer_leaves_no_pair_out() -> None:
    """One failure of 1,000 requests is at p99.9, which 999 of them reached."""
    reached = Latency(p50=0.1, p90=0.1, p95=0.1, p99=0.2, p99_9=0.3, max=0.4)
    failed = step(
        variant="b",
        failures=1,
        latency_seconds=reached,
        latency_with_failures_seconds=reached.model_copy(update={"p99_9": None, "max": None}),
    )
    assert METRICS["p99.9"].of(failed) == 0.4
    others = runs([0.1] * 7, "b")
    others[0].steps = [failed]
    result = compare_arms(*arms(runs([0.1] * 7, "a"), others), ComparisonQuestion("p99.9"))
    assert (len(result.results[0].pairs), result.left_out) == (7, [])
    assert result.results[0].pairs[0].b == 0.4
    assert result.results[0].ratio is not None


def test_dropped_requests_count_as_infinite() -> None:
    latencies = Latency(p50=0.1, p90=0.4)
    dropping = step(dropped=60, latency_with_failures_seconds=latencies)
    assert METRICS["p90"].of(dropping) == 0.4
    assert METRICS["p95"].of(dropping) == math.inf
    assert METRICS["success"].of(dropping) == pytest.approx(60 / 1060)


def test_throughput_is_what_was_answered_within_the_window() -> None:
    """One answer that is 2.9 s late lengthens the drain of a run, and changes nothing else."""
    late = [
        record(
            step(
                0.1,
                variant="b",
                repeat=n,
                achieved_rate=95.4,
                completed_rate=99.9,
                drain_seconds=2.9,
            )
        )
        for n in range(1, 7)
    ]
    prompt = [
        record(step(0.1, variant="a", repeat=n, achieved_rate=100, completed_rate=100))
        for n in range(1, 7)
    ]
    found = compare_arms(*arms(prompt, late), ComparisonQuestion("throughput"))
    assert (found.verdict, found.results[0].b) == ("equivalent", pytest.approx(99.9))
    assert found.notes == []
    # One formula for all: an older record has no other rate.
    prompt[0].steps[0].completed_rate = None
    old = compare_arms(*arms(prompt, late), ComparisonQuestion("throughput"))
    assert old.results[0].ratio == pytest.approx(0.954)
    assert any("includes the drain (achieved_rate)" in note for note in old.notes)


def test_latencies_that_are_not_the_same_figure_are_compared_only_when_asked_for() -> None:
    a, b = runs(SIX, "a"), runs(SLOWER, "b")
    for each in b:
        each.latency_basis = "http_req_duration"
    with pytest.raises(UsageError, match=r"response time, http_req_duration.*--mixed-latency"):
        compare_arms(*arms(a, b), P95)
    mixed = compare_arms(*arms(a, b), replace(P95, mixed_latency=True))
    assert mixed.verdict == "worse"
    assert "the latencies are not the same figure: response time, http_req_duration" in mixed.notes
    # Throughput is the same figure in both.
    assert compare_arms(*arms(a, b), ComparisonQuestion("throughput")).verdict == "equivalent"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (QuestionOptions(primary="p94"), "--primary p94: there is no such metric"),
        (QuestionOptions(metrics="p50,thruput"), "did you mean 'throughput'"),
        (QuestionOptions(margin="0%"), "--margin 0%: must be above 0"),
        (QuestionOptions(margin="wide"), "--margin: 'wide' is no share"),
        (QuestionOptions(at=["rate"]), "write it as --at key=value"),
    ],
)
def test_an_invalid_option_of_a_comparison_is_one_line(
    asked: QuestionOptions, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        asked.of(None)


def test_the_command_line_changes_what_the_plan_declares() -> None:
    plan = CompareBy(primary="p50", at={"rate": 600}, metrics=["p50", "mean"], margin="3%")
    assert QuestionOptions().of(plan) == ComparisonQuestion(
        "p50", ["p50", "mean"], 0.03, {"rate": 600}
    )
    asked = QuestionOptions("mean", "p99, p50", "10%").of(plan)
    assert (asked.all_metrics, asked.margin) == (["mean", "p99", "p50"], 0.1)
