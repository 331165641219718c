"""Looks at one question: which comparisons count, what error is left, and how a planned look ends a
comparison."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from spikelab.comparison import experiment
from spikelab.comparison.looks import look_at, question_of
from spikelab.comparison.pairing import Arm
from spikelab.comparison.verdict import ComparisonQuestion, compare_arms
from spikelab.errors import UsageError
from spikelab.experiments import sweep
from spikelab.experiments.session import ExperimentSession, arm_digest
from spikelab.plans.load import changed, load_plan
from spikelab.plans.model import Plan
from spikelab.results.comparison import ComparisonRecord
from spikelab.run import RunOptions
from tests.support.comparison_runs import START, arms, record, runs, step

P95 = ComparisonQuestion("p95")
SIX = [0.100, 0.102, 0.099, 0.101, 0.098, 0.103]
NOISY = [0.08, 0.13, 0.09, 0.12, 0.08, 0.11]
SLOWER = [0.2, 0.21, 0.19, 0.2, 0.22, 0.2]
PLAN = """\
name: mine
about: Two arms
script: steady
parameters:
  duration: {about: of a run, default: 2s}
request: {path: "/hello"}
phases:
  - {name: steady, kind: rate, value: 100, duration: "${duration}"}
variants:
  - {name: a}
  - {name: b, settings: {TOMCAT_MAX_THREADS: 100}}
repeats: 18
compare: {primary: p95, looks: 3}
"""


def plan(tmp_path: Path, text: str = PLAN) -> Plan:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    return load_plan(str(file))


def sides(b: list[float], rivals: int = 1) -> tuple[Arm, Arm]:
    ours = arms(runs(SIX, "a"), runs(b, "b"))
    one, other = (
        replace(arm, digest=name, rivals=rivals) for arm, name in zip(ours, "ab", strict=True)
    )
    return one, other


_LOOKS = iter(range(1, 1000))


def looked(a: Arm, b: Arm, question: ComparisonQuestion = P95) -> ComparisonRecord:
    """The comparison, as it is kept."""
    found = compare_arms(a, b, question, look_at(a, b, question))
    found.created = START + timedelta(days=next(_LOOKS))
    found.save()
    return found


def test_each_look_after_an_inconclusive_one_has_less_error() -> None:
    first, second, third = (looked(*sides(NOISY)) for _ in range(3))
    assert [each.verdict for each in (first, second, third)] == ["inconclusive"] * 3
    levels = [each.confidence_level for each in (first, second, third)]
    assert levels == pytest.approx([0.96, 0.996, 0.998])
    assert third.earlier == [first.comparison, second.comparison]
    assert f"look 3 at the same question, after {first.comparison}" in third.notes[-1]
    assert second.deciding is not None
    assert first.deciding is not None
    assert (second.deciding.high or 0) > (first.deciding.high or 0)


def test_after_a_verdict_the_next_comparison_is_a_first_one() -> None:
    looked(*sides(NOISY))
    decided = looked(*sides(SLOWER))
    assert (decided.verdict, decided.confidence_level) == ("worse", pytest.approx(0.996))
    assert looked(*sides(NOISY)).earlier == []


def test_the_same_runs_asked_the_same_have_the_same_verdict() -> None:
    a, b = sides(NOISY)
    first, again, swapped = looked(a, b), looked(a, b), looked(b, a)
    assert first.earlier == again.earlier == swapped.earlier == []
    assert first.confidence_level == again.confidence_level == swapped.confidence_level
    # Three times the same is one look.
    assert looked(*sides(NOISY)).earlier == [first.comparison]


def test_another_metric_place_or_margin_of_the_same_runs_is_another_look() -> None:
    a, b = sides(SLOWER)
    first = looked(a, b)
    assert first.verdict == "worse"
    for question in (ComparisonQuestion("p50"), replace(P95, margin=0.1)):
        found = compare_arms(a, b, question, look_at(a, b, question))
        assert found.earlier == [first.comparison]


def test_the_arms_of_one_experiment_share_the_error() -> None:
    assert look_at(*sides(NOISY, rivals=2), P95).error == pytest.approx(0.02)


def test_a_question_is_what_the_arms_measure_however_often_and_long(tmp_path: Path) -> None:
    source = plan(tmp_path)

    def digest(name: str = "b", options: RunOptions | None = None, **keys: Any) -> str:
        other = changed(source, keys.pop("values", None), **keys)
        return arm_digest(other, options or RunOptions(), other.variant(name))

    longer: dict[str, Any] = {"duration": "4s"}
    assert digest() == digest(repeats=24) == digest(values=longer) == digest(about="other")
    assert digest() == digest(compare={"primary": "p50"}) == digest(cool_down="3s")
    other_settings = [{"name": "a"}, {"name": "b", "settings": {"TOMCAT_MAX_THREADS": 50}}]
    assert digest() != digest(variants=other_settings)
    assert digest() != digest("a")
    assert digest() != digest(request={"path": "/hello?ms=1"})
    assert digest() != digest(options=RunOptions(labels={"commit": "abc"}))
    assert digest() != digest(options=RunOptions(target_settings={"TOMCAT_ACCEPT_COUNT": "7"}))


def test_swapping_a_and_b_is_the_same_question() -> None:
    a, b = sides(NOISY)
    assert question_of(a, b) == question_of(b, a)


class Runs:
    """Stands in for the lab: each cell that is run gets a record with the variant's latency."""

    def __init__(self, b: float, noise: float) -> None:
        self.done: list[int] = []
        self._b, self._random = b, np.random.default_rng(1)
        self._noise = noise

    def run_cells(self, session: ExperimentSession, repeats: int | None = None) -> None:
        for cell in session.state.cells:
            if not cell.done and (repeats is None or cell.repeat <= repeats):
                seconds = 0.1 * np.exp(self._random.normal(0, self._noise))
                seconds *= self._b if cell.variant == "b" else 1
                found = record(step(float(seconds), variant=cell.variant, repeat=cell.repeat))
                found.save()
                cell.testid = found.testid
        self.done.append(repeats or 0)


@pytest.mark.parametrize(
    ("b", "noise", "verdict", "looks"),
    [(1.3, 0.02, "worse", [6]), (1.0, 0.1, "inconclusive", [6, 12, 18])],
)
def test_the_first_planned_look_that_decides_ends_the_runs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    b: float,
    noise: float,
    verdict: str,
    looks: list[int],
) -> None:
    source = plan(tmp_path)
    question = ComparisonQuestion.of(source.compare)
    lab = Runs(b, noise)
    monkeypatch.setattr(sweep, "run_cells", lab.run_cells)
    new = experiment.new_comparison(source, RunOptions(), question)
    session = SimpleNamespace(
        state=new.state, experiment=new, finish=lambda answer: None, stop=lambda reason: None
    )
    (found,) = experiment.run_comparison(cast(ExperimentSession, session), question)
    assert (found.verdict, lab.done, found.looks) == (verdict, looks, [6, 12, 18])
    assert len(new.state.cells) == 2 * looks[-1]
    # A third of 4 % at each of the three.
    assert found.confidence_level == pytest.approx(1 - 0.04 / 3)


def test_another_question_does_not_go_on_with_the_runs_of_the_first(tmp_path: Path) -> None:
    source = plan(tmp_path)
    question = ComparisonQuestion.of(source.compare)
    state = experiment.new_comparison(source, RunOptions(), question).state
    state.state = "stopped"
    state.save()
    for asked, goes_on in ((question, True), (replace(question, looks=1), False)):
        resumed = experiment.new_comparison(source, RunOptions(), asked).resumed()
        assert bool(resumed) is goes_on


def test_looks_with_too_few_pairs_are_refused_with_the_line(tmp_path: Path) -> None:
    source = plan(tmp_path, PLAN.replace("looks: 3", "looks: 4"))
    with pytest.raises(UsageError, match=r"line 13: looks: 4 at 18 pairs: .* at least 24 pairs"):
        experiment.new_comparison(source, RunOptions(), ComparisonQuestion.of(source.compare))
