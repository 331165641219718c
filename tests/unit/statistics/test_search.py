"""The capacity search as a machine of judged steps, without any process."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.verdicts import Judge, Queue, falling, run_search
from spikelab.objectives import Verdict
from spikelab.statistics.search import Capacity, Search, answer, counted, next_rate

SEARCH = Search(first_rate=100, lowest_rate=1, highest_rate=100_000)


# Growth and bisection to 5 % need about 25 steps over these rates; contradictions cost more.
MOST_STEPS = 120


def course(judge: Judge, search: Search = SEARCH) -> tuple[Capacity, list[tuple[float, str]]]:
    found, steps = run_search(search, judge)
    return found, [(step.rate, step.verdict) for step in steps]


def test_a_search_grows_bisects_and_confirms() -> None:
    found, steps = course(falling(start=400, fall=0))
    assert steps == [
        (100, "pass"),
        (200, "pass"),
        (400, "pass"),
        (800, "fail"),
        (566, "fail"),
        (476, "fail"),
        (436, "fail"),
        (418, "fail"),
        # The candidate and one step above, in turn.
        (400, "pass"),
        (418, "fail"),
        (400, "pass"),
        (418, "fail"),
    ]
    assert found == Capacity("found", 400, 418)


@given(st.floats(2, 90_000), st.floats(1.0, 50_000), st.floats(0.02, 0.2), st.integers(0, 3))
def test_a_sharp_capacity_is_found_to_the_precision(
    capacity: float, first: float, precision: float, confirmations: int
) -> None:
    search = Search(first, 1, 100_000, precision=precision, confirmations=confirmations)
    found, steps = run_search(search, falling(capacity, 0))
    assert found.outcome == "found"
    assert found.highest_pass is not None
    assert found.lowest_fail is not None
    assert found.highest_pass <= capacity < found.lowest_fail
    assert found.lowest_fail / found.highest_pass <= 1 + precision
    assert len(steps) <= 40
    for end in (found.highest_pass, found.lowest_fail):
        assert [step.rate for step in counted(steps)].count(end) == 1 + confirmations


@given(st.integers(1, 3000), st.integers(1, 3000), st.floats(1.06, 3), st.integers(0, 2))
def test_whole_numbers_are_found_as_close_as_they_can_be(
    capacity: int, first: int, growth: float, confirmations: int
) -> None:
    search = Search(first, 1, 3001, growth, confirmations=confirmations, whole=True)
    found, steps = course(falling(capacity, 0), search)
    assert found.outcome == "found"
    assert found.highest_pass is not None
    assert found.lowest_fail is not None
    assert found.highest_pass <= capacity < found.lowest_fail
    close = found.lowest_fail / found.highest_pass <= 1 + search.precision
    assert close or found.lowest_fail - found.highest_pass == 1
    assert all(rate == int(rate) for rate, _ in steps)


@given(st.lists(st.sampled_from(["pass", "fail", "inconclusive"]), min_size=MOST_STEPS))
def test_every_search_ends_and_its_answer_holds_against_every_step(said: list[Verdict]) -> None:
    found, steps = run_search(SEARCH, lambda _, done: said[done])
    assert len(steps) < MOST_STEPS
    passed, failed = found.highest_pass, found.lowest_fail
    for step in counted(steps):
        assert SEARCH.lowest_rate <= step.rate <= SEARCH.highest_rate
        if passed is not None and step.rate <= passed:
            assert step.verdict != "fail"
        if failed is not None and step.rate >= failed:
            assert step.verdict != "pass"
    if found.outcome == "found":
        assert passed is not None
        assert failed is not None
        assert 1 < failed / passed <= SEARCH.widest


@given(st.lists(st.sampled_from(["pass", "fail", "inconclusive"]), min_size=MOST_STEPS))
def test_a_search_goes_on_from_its_steps(said: list[Verdict]) -> None:
    _, steps = run_search(SEARCH, lambda _, done: said[done])
    for done in range(len(steps)):
        assert next_rate(SEARCH, steps[:done]) == steps[done].rate
        if done:
            assert answer(SEARCH, steps[:done]).reason == "the search is not over"


def test_where_nothing_passes_the_capacity_is_below_the_lowest() -> None:
    found, steps = course(lambda *_: "fail", Search(100, 20, 1000, confirmations=1))
    assert [rate for rate, _ in steps] == [100, 100, 50, 25, 20, 20]
    assert found == Capacity("below", None, 20)


def test_where_everything_passes_the_capacity_is_above_the_highest() -> None:
    found, steps = course(lambda *_: "pass", Search(100, 20, 700, confirmations=1))
    assert [rate for rate, _ in steps] == [100, 200, 400, 700, 700]
    assert found == Capacity("at least", 700, None)


def test_a_driver_at_its_limit_leaves_the_upper_end_open() -> None:
    found, steps = course(lambda rate, _: "pass" if rate <= 1000 else "inconclusive")
    assert found.outcome == "inconclusive"
    assert found.highest_pass == pytest.approx(1000, rel=0.05)
    assert found.lowest_fail is None
    assert found.reason is not None
    assert "no verdict at" in found.reason
    # Each such rate twice, and no growth beyond two of them.
    assert max(rate for rate, _ in steps) == 3200


def test_one_rate_without_a_verdict_lies_inside_the_answer() -> None:
    def judge(rate: float, _: int) -> Verdict:
        if 398 < rate < 402:
            return "inconclusive"
        return "pass" if rate < 400 else "fail"

    found, _ = course(judge)
    assert found.outcome == "found"
    assert found.highest_pass is not None
    assert found.lowest_fail is not None
    assert found.highest_pass < 400 < found.lowest_fail


@pytest.mark.parametrize("confirmations", [0, 2])
def test_a_target_that_was_just_started_may_fail_one_step(confirmations: int) -> None:
    search = Search(300, 1, 1000, confirmations=confirmations)
    found, steps = course(lambda rate, done: _sharp(rate) if done else "fail", search)
    assert steps[:2] == [(300, "fail"), (300, "pass")]
    assert found.outcome == "found"
    assert found.highest_pass is not None
    assert found.lowest_fail is not None
    assert found.highest_pass <= 400 < found.lowest_fail
    # One that was no cold start costs a step and changes nothing.
    found, steps = course(falling(250, 0), search)
    assert steps[:3] == [(300, "fail"), (300, "fail"), (150, "pass")]
    assert found.outcome == "found"


def test_an_inconclusive_step_is_tried_again() -> None:
    found, steps = course(lambda rate, done: "inconclusive" if done == 2 else _sharp(rate))
    assert [rate for rate, _ in steps][:5] == [100, 200, 400, 400, 800]
    assert found == Capacity("found", 400, 418)


def _sharp(rate: float) -> Verdict:
    return "pass" if rate <= 400 else "fail"


def test_a_candidate_that_fails_its_confirmation_is_no_answer() -> None:
    found, _ = course(lambda rate, done: "fail" if done == 8 else _sharp(rate))
    assert found.outcome == "found"
    assert found.highest_pass is not None
    assert found.highest_pass < 400
    assert found.lowest_fail == 418


@pytest.mark.parametrize("fall", [0.02, 0.05, 0.2, -0.03])
@pytest.mark.parametrize("start", [310, 400, 555])
def test_a_capacity_that_drifts_is_inconclusive(start: float, fall: float) -> None:
    found, _ = run_search(SEARCH, falling(start, fall))
    assert found.outcome == "inconclusive"
    assert found.reason is not None
    assert "drifts or varies" in found.reason


def test_a_capacity_that_halves_is_inconclusive() -> None:
    found, _ = course(lambda rate, done: "pass" if rate <= (400 if done < 4 else 200) else "fail")
    assert found.outcome == "inconclusive"


def test_the_capacity_of_a_queue_with_random_service_times_is_found() -> None:
    queue, random = Queue(), np.random.default_rng(1)
    ended = [run_search(SEARCH, queue.judge(60, random))[0] for _ in range(8)]
    found = [one for one in ended if one.outcome == "found"]
    assert len(found) >= 7
    for one in found:
        assert one.highest_pass is not None
        assert one.lowest_fail is not None
        assert one.highest_pass <= queue.capacity() <= one.lowest_fail


@pytest.mark.parametrize(
    "wrong",
    [
        {"first_rate": 0.5},
        {"first_rate": 1e6},
        {"lowest_rate": 0},
        {"precision": 0.001},
        {"growth": 1.01},
        {"tries": 0},
        {"confirmations": -1},
    ],
)
def test_a_search_that_could_not_end_is_refused(wrong: dict[str, float]) -> None:
    asked = {"first_rate": 100, "lowest_rate": 1, "highest_rate": 1000, **wrong}
    with pytest.raises(ValueError, match=r"rates|precision|confirmations"):
        Search(**asked)  # type: ignore[arg-type]


def test_the_simulated_queue_is_erlangs() -> None:
    # Two servers at 75 % load: C = 9/14 (M/M/2 by hand: a = 1.5, p0 = 1/7).
    two = Queue(workers=2, service_seconds=1.0, limit_seconds=0.0)
    assert two.late_share(1.5) == pytest.approx(9 / 14)
    queue = Queue(limit_seconds=0.02)
    late, asked = queue.step(340, 2000, np.random.default_rng(1))
    assert sum(late) / sum(asked) == pytest.approx(queue.late_share(340), rel=0.1)
    assert queue.late_share(queue.capacity()) == pytest.approx(queue.allowed)
