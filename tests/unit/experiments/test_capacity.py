"""A capacity search around its runs: what is asked, what is kept, what is said."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spikelab import paths
from spikelab.errors import LabError, UsageError
from spikelab.experiments.capacity import CapacityQuestion, answer_of, search_capacity
from spikelab.experiments.overload import Load
from spikelab.experiments.session import Experiment, ExperimentSession, rested_at, with_next_step
from spikelab.objectives import Verdict
from spikelab.plans.load import load_plan, plan_of
from spikelab.results.experiment import CapacityStep, CellState, ExperimentState
from spikelab.run import RunOptions
from spikelab.stack.base import Runtime
from tests.support.records import START, plain_record, plain_step

PLAN = """\
name: mine
about: a search of the test
script: steady
parameters:
  rate: {about: requests a second, default: 100.0}
phases:
  - {name: warm-up, kind: rate, value: "${rate}", duration: 1s, judged: false}
  - {name: step, kind: rate, value: "${rate}", duration: 5s}
slo: [success >= 99%]
capacity: {first: 100, lowest: 50, highest: 1600, confirmations: 0}
"""


OVERLOAD = ("confirmations: 0", "confirmations: 0, overload: {factor: 2, duration: 5s}")


def question(
    folder: Path, *changes: tuple[str, str], slo: tuple[str, ...] = ()
) -> CapacityQuestion:
    text = PLAN
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "mine.yaml").write_text(text)
    return CapacityQuestion.of(load_plan(str(folder / "mine.yaml")), slo=slo)


def step(value: float, verdict: Verdict) -> CapacityStep:
    return CapacityStep(testid="x", value=value, verdict=verdict)


def test_objectives_of_the_command_line_take_the_place_of_the_phase_s_own(tmp_path: Path) -> None:
    own = ("duration: 5s}", "duration: 5s, slo: [p95 < 2s]}")
    assert [each.text for each in question(tmp_path, own).objectives] == ["p95 < 2s"]
    asked = question(tmp_path, own, slo=("p95 < 250ms",))
    assert [each.text for each in asked.objectives] == ["p95 < 250ms"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            [('"${rate}", duration: 5s', "90.0, duration: 5s")],
            "capacity.overload is so many times 'rate'",
        ),
        (
            [("step, kind: rate", "step, kind: users")],
            "line 10: capacity.overload: the overload is",
        ),
        (
            [
                ("factor: 2, duration: 5s", "factor: 20, duration: 60s"),
                ("first: 100, lowest: 50", "first: 1600, lowest: 1600"),
            ],
            "users are more than this machine carries",
        ),
        (
            [
                ("factor: 2, duration: 5s", "factor: 2, duration: 4s"),
                ("duration: 5s}\nslo", "duration: 5s, jitter: 5s}\nslo"),
            ],
            "jitter is longer than the phase's duration",
        ),
    ],
)
def test_an_overload_that_cannot_be_run_is_refused_before_the_search(
    tmp_path: Path, changes: list[tuple[str, str]], message: str
) -> None:
    with pytest.raises(UsageError) as error:
        question(tmp_path, OVERLOAD, *changes).check(RunOptions())
    assert message in str(error.value)


def test_the_phases_of_an_overload_follow_each_other(tmp_path: Path) -> None:
    asked = question(tmp_path, OVERLOAD, ("duration: 5s}\nslo", "duration: 5s, start: 5s}\nslo"))
    asked.check(RunOptions())
    load = Load(capacity=400, factor=2, duration="5s", recovery="20s")
    phases = plan_of(load.plan(asked.plan), load.values).phases
    assert [(phase.name, phase.start_seconds, phase.value) for phase in phases] == [
        ("warm-up", 0, 100),
        ("overload", 5, 800),
        ("recovery", 10, 200),
    ]


@pytest.mark.parametrize(
    "changes",
    [
        [("default: 100.0", "default: 100")],
        # Users are whole, however the plan writes them.
        [("kind: rate", "kind: users")],
    ],
)
def test_a_search_over_whole_numbers_tries_whole_numbers_alone(
    tmp_path: Path, changes: list[tuple[str, str]]
) -> None:
    bounds = ("first: 100, lowest: 50, highest: 1600", "first: 3, lowest: 1, highest: 40")
    asked = question(tmp_path, bounds, *changes)
    tried: list[CapacityStep] = []
    while (value := asked.next_value(tried)) is not None:
        assert value == int(value)
        plan_of(asked.plan, asked.values(value))
        tried.append(step(value, "pass" if value <= 7 else "fail"))
    found = answer_of(asked, tried)
    assert (found.outcome, found.highest_pass, found.lowest_fail) == ("found", 7, 8)


def test_a_first_value_that_the_parameter_refuses_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"capacity\.first: rate=99\.5: must be a whole number"):
        question(tmp_path, ("default: 100.0", "default: 100"), ("first: 100", "first: 99.5"))


@pytest.mark.parametrize(
    ("parameter", "said"),
    [("rate", "200/s failed and 400/s passed"), ("users", "200 users failed")],
)
def test_a_reason_has_the_parameter_s_unit(tmp_path: Path, parameter: str, said: str) -> None:
    changes = [
        ("  rate:", f"  {parameter}:"),
        ("${rate}", f"${{{parameter}}}"),
        ("{first", f"{{parameter: {parameter}, first"),
    ]
    tried = [step(200, verdict) for verdict in ("inconclusive", "fail")]
    tried += [step(50, "pass"), step(400, "pass"), step(1600, "fail")]
    found = answer_of(question(tmp_path, *changes), tried)
    assert found.reason
    assert said in found.reason


def test_a_first_step_that_does_not_count_says_so(tmp_path: Path) -> None:
    tried = [step(100, "fail"), step(100, "pass"), step(200, "fail")]
    found = answer_of(question(tmp_path), tried)
    assert [each.why for each in found.steps] == [
        "not counted: the target may still have been cold",
        "",
        "",
    ]
    assert [each.verdict for each in found.steps] == ["fail", "pass", "fail"]


def test_a_search_that_ends_with_the_last_step_allowed_has_its_answer(tmp_path: Path) -> None:
    asked = question(tmp_path, ("confirmations: 0", "confirmations: 20"))
    ends = [(400, "pass"), (418, "fail")] * 30
    tried = [step(value, cast(Verdict, verdict)) for value, verdict in ends]
    assert len(tried) == 60
    assert answer_of(asked, tried).outcome == "found"
    undecided = [step(100, "pass"), *[step(200, "pass")] * 59]
    assert answer_of(asked, undecided).reason == "no end after 60 steps"


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    return tmp_path / "results"


def done(asked: CapacityQuestion, values: dict[float, int]) -> ExperimentState:
    """An experiment with a run of each rate, and its failures."""
    state = asked.experiment(RunOptions()).state
    for number, (rate, failures) in enumerate(values.items()):
        testid = f"20261121T01020{number}Z-mine-0a1b"
        judged = plain_step(5.0, rate, failures=failures, late_answers=0)
        plain_record(judged, testid=testid).save()
        state.cells.append(CellState(values=asked.values(rate), testid=testid))
    return state


def test_an_answer_stays_when_the_overload_after_it_fails(
    tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = question(tmp_path, OVERLOAD)
    state = done(asked, {400: 0, 418: 2000, 1600: 8000, 800: 4000, 100: 0})
    opened: list[str] = []

    @contextmanager
    def open_session(*_: Any) -> Iterator[Any]:
        opened.append(state.state)
        if len(opened) == 2:
            raise LabError("the store is gone")
        going = SimpleNamespace(state=state, save=state.save)
        going._end = partial(ExperimentSession._end, going)
        going.stop = partial(ExperimentSession.stop, going)
        yield going

    monkeypatch.setattr(Experiment, "session", open_session)
    with pytest.raises(LabError, match="the store is gone"):
        search_capacity(Experiment(asked.plan, RunOptions(), state), asked, cast(Runtime, None))
    found = asked.experiment(RunOptions()).resumed()
    assert found
    kept = found.state
    assert kept.state == "stopped"
    assert kept.answer
    assert (kept.answer["outcome"], kept.answer["highest_pass"]) == ("found", 400)


def test_the_cool_down_counts_from_the_last_run(tmp_path: Path, results: Path) -> None:
    asked = question(tmp_path, ("slo:", "cool_down: 90s\nslo:"))
    state = done(asked, {})
    assert rested_at(state, asked.plan) is None
    state = done(asked, {100: 0, 200: 0})
    rested = rested_at(state, asked.plan)
    # A run of records.py takes a minute.
    assert rested
    assert (rested - START).total_seconds() == 60 + 90


@pytest.mark.parametrize(
    ("kind", "testids", "said"),
    [
        ("capacity", ["a", None], "full; its steps are kept: the same command goes on"),
        (
            "sweep",
            ["a", None],
            "full; 1 of 2 runs are done: the same command goes on with run 2 of",
        ),
        ("sweep", ["a", "b"], "full; all 2 runs are done: the same command gives the answer"),
    ],
)
def test_a_stopped_experiment_says_with_which_run_it_goes_on(
    tmp_path: Path, results: Path, kind: Any, testids: list[str | None], said: str
) -> None:
    results.mkdir()
    state = done(question(tmp_path), {})
    state.kind, state.cells = kind, [CellState(testid=testid) for testid in testids]
    assert str(with_next_step(state, LabError("full"))).startswith(said)
