"""What names mean on the command line, baselines, and the runs that a plan's comparison needs."""

from dataclasses import replace
from pathlib import Path

import pytest

from spikelab import paths
from spikelab.cli import imports
from spikelab.comparison import experiment
from spikelab.comparison.pairing import baselines, find_arm, mark_baseline, notes, two_arms
from spikelab.comparison.verdict import ComparisonQuestion, compare_arms
from spikelab.errors import UsageError
from spikelab.plans.load import load_plan, plan_files
from spikelab.plans.model import Plan
from spikelab.results.experiment import CellState, ExperimentState
from spikelab.results.run import RunRecord
from spikelab.run import RunOptions
from tests.support.comparison_runs import START, arms, runs

VEGETA = paths.ROOT / "tests" / "data" / "vegeta_sweep"


PLAN = """\
name: mine
about: Two arms
script: steady
parameters:
  rate: {about: Requests a second, default: 100}
  ms: {about: The service time, default: 20}
request: {path: "/hello?ms=${ms}"}
phases:
  - {name: steady, kind: rate, value: "${rate}", duration: 2s}
variants:
  - {name: fast}
  - {name: slow, set: {ms: 30}}
  - {name: slower, set: {ms: 40}}
repeats: 6
sweep: {values: {rate: [100, 200]}}
compare: {primary: p50, at: {rate: 200}}
"""


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "results"
    folder.mkdir()
    monkeypatch.setattr(paths, "RESULTS", folder)
    return folder


@pytest.fixture
def vegeta() -> str:
    imports.run("vegeta", VEGETA, [], None)
    return str(next(RunRecord.read_all()).experiment)


def saved(name: str, a: list[float], b: list[float]) -> ExperimentState:
    """An experiment of two variants whose runs are recorded."""
    state = ExperimentState(
        experiment=name, kind="comparison", plan="mine", digest="", started=START, order="abba"
    )
    for variant, figures in (("fast", a), ("slow", b)):
        for record in runs(figures, variant):
            record.experiment = name
            record.save()
            repeat = record.steps[0].repeat
            state.cells.append(CellState(variant=variant, repeat=repeat, testid=record.testid))
    state.save()
    return state


def plan(tmp_path: Path, text: str = PLAN) -> Plan:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    return load_plan(str(file))


def test_variants_of_an_imported_sweep_are_set_side_by_side_by_rate(vegeta: str) -> None:
    result = compare_arms(
        find_arm(f"{vegeta}:off"), find_arm(f"{vegeta}:on"), ComparisonQuestion("p95", ["p99.9"])
    )
    assert result.verdict is None
    assert result.interleaved is None
    assert [each.place["rate"] for each in result.results[::2]] == [200, 400, 600, 800, 1000]
    at_200 = result.results[0]
    assert (at_200.a, at_200.b) == (pytest.approx(0.022037, rel=0.01), pytest.approx(0.527538))
    # More than 5 % of its requests failed at 1,000/s; what vegeta does not print is not infinite.
    assert (result.results[8].b, result.results[9].b) == ("infinite", None)
    assert "only B was run at rate=850, rate=900, rate=950" in result.notes
    assert {each.repeat for each in result.left_out} == {2}


def test_the_beginning_of_a_name_is_enough_where_no_other_begins_so(vegeta: str) -> None:
    state = saved("20261121T010203Z-mine-abcd", [0.1] * 6, [0.2] * 6)
    assert find_arm("20261121T010203Z-mine-ab").name == state.experiment
    assert find_arm(f"{vegeta[:20]}:on").variant == "on"
    assert find_arm(state.cells[0].testid or "").single
    with pytest.raises(UsageError, match="is the beginning of 13 names: write more of it"):
        find_arm("20261121T010203Z")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "there is no run or experiment 'nothing' .newest: .*: see ./lab runs"),
        ("20261121T010203Z-mine-abcd:quick", "has no variant 'quick'"),
        ("20261121T010203Z-mine-abce", "did you mean '20261121T010203Z-mine-abcd'"),
    ],
)
def test_an_unknown_name_is_one_line(name: str, message: str) -> None:
    saved("20261121T010203Z-mine-abcd", [0.1] * 6, [0.2] * 6)
    with pytest.raises(UsageError, match=message):
        find_arm(name)


def test_a_baseline_is_marked_used_and_replaced() -> None:
    first = saved("20261121T010203Z-mine-aaaa", [0.1] * 6, [0.2] * 6)
    second = saved("20261121T010203Z-mine-bbbb", [0.1] * 6, [0.3] * 6)
    with pytest.raises(UsageError, match="plan mine has no baseline: mark one with"):
        two_arms([second.experiment])
    mark_baseline(f"{first.experiment}:slow")
    a, b = two_arms([f"{second.experiment}:slow"])
    assert (a.name, b.name) == (f"{first.experiment}:slow", f"{second.experiment}:slow")
    assert compare_arms(a, b, ComparisonQuestion()).verdict == "worse"
    swapped = two_arms([f"{second.experiment}:slow", "baseline"])
    assert compare_arms(*swapped, ComparisonQuestion()).verdict == "better"
    mark_baseline(second.experiment)
    assert baselines() == {"mine": second.experiment}


def test_a_cell_without_a_valid_run_leaves_its_pair_out() -> None:
    state = saved("20261121T010203Z-mine-aaaa", [0.1] * 7, [0.2] * 7)
    cell = state.cells[-1]
    record = next(each for each in RunRecord.read_all() if each.testid == cell.testid)
    record.valid, record.reasons = False, ["the target died"]
    record.save()
    cell.attempts, cell.testid = [record.testid], None
    state.save()
    result = compare_arms(
        *two_arms([f"{state.experiment}:fast", f"{state.experiment}:slow"]), ComparisonQuestion()
    )
    assert (result.verdict, len(result.results[0].pairs)) == ("worse", 6)
    assert "the target died" in result.left_out[0].reason


def test_a_plan_runs_its_variants_in_turn(tmp_path: Path) -> None:
    source = plan(tmp_path)
    question = ComparisonQuestion.of(source.compare)
    chosen = experiment.choose_variants(source, None, ["slow"])
    state = experiment.new_comparison(chosen, RunOptions(), question).state
    assert (state.kind, len(state.cells)) == ("comparison", 6 * 2 * 2)
    assert [cell.variant for cell in state.cells[:6]] == 2 * ["fast", "slow"] + ["slow", "fast"]


def test_chosen_variants_are_run_alone_and_unknown_ones_refused(tmp_path: Path) -> None:
    source = plan(tmp_path)

    def chosen(a: str | None, *b: str) -> list[str]:
        return [each.name for each in experiment.choose_variants(source, a, b).variants]

    assert chosen(None) == ["fast", "slow", "slower"]
    assert chosen("slow") == ["slow", "fast", "slower"]
    assert chosen("slower", "fast") == ["slower", "fast"]
    with pytest.raises(UsageError, match="did you mean 'slow'"):
        chosen("slo")
    with pytest.raises(UsageError, match="these are the same"):
        chosen("slow", "slow")
    with pytest.raises(UsageError, match="names every variant"):
        chosen(None, "fast", "slow", "slower")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("repeats: 6", "repeats: 5", r"line \d+: repeats: 5 cannot .* needs at least 6"),
        ("compare: {primary: p50, at: {rate: 200}}", "", r"--at rate=100\|200"),
        ("at: {rate: 200}", "at: {rate: 300}", "--at rate=300: A and B were not both run"),
    ],
)
def test_a_comparison_that_could_not_decide_is_refused_before_any_run(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    source = plan(tmp_path, PLAN.replace(old, new))
    question = ComparisonQuestion.of(source.compare)
    with pytest.raises(UsageError, match=message):
        experiment.new_comparison(source, RunOptions(), question)
    with pytest.raises(UsageError, match=message):
        experiment.identical_arms(source, question)


@pytest.mark.parametrize("name", plan_files())
def test_a_ready_plan_that_says_how_to_compare_can_decide(name: str) -> None:
    presets = load_plan(name).presets
    for source in (load_plan(name, preset=preset) for preset in (None, *presets)):
        by = source.compare
        if by is not None:
            sides = experiment.choose_variants(source, None, [])
            assert experiment.new_comparison(
                sides, RunOptions(), ComparisonQuestion.of(by)
            ).state.cells


def test_identical_arms_are_the_first_variant_twice_as_often_where_it_decides(
    tmp_path: Path,
) -> None:
    source = plan(tmp_path)
    question = ComparisonQuestion.of(source.compare)
    identical = experiment.identical_arms(source, question)
    state = experiment.new_comparison(identical, RunOptions(), question).state
    assert len(state.cells) == 12
    assert {(cell.variant, cell.values["rate"]) for cell in state.cells} == {("fast", 200)}
    for cell, record in zip(state.cells, runs([0.1] * 12, "fast", rate=200), strict=True):
        record.save()
        cell.testid = record.testid
    result = experiment.compare_identical_arms(state, question)
    assert (result.verdict, result.interleaved) == ("equivalent", True)
    # A B, B A, A B …: the first run of every second pair is B's.
    order = [cell.testid for cell in state.cells]
    pairs = result.results[0].pairs
    assert [(order.index(p.a_run), order.index(p.b_run)) for p in pairs[:3]] == [
        (0, 1),
        (3, 2),
        (4, 5),
    ]


@pytest.mark.parametrize(
    ("order", "said"),
    [("as-written", ["A ran before B in every repeat (order: as-written)"]), ("abba", [])],
)
def test_a_note_says_where_a_ran_before_b_in_every_repeat(order: str, said: list[str]) -> None:
    assert notes(*arms(runs([0.1] * 2, "a"), runs([0.1] * 2, "b"), order)) == said


def test_a_note_says_that_two_experiments_were_not_interleaved() -> None:
    a, b = arms(runs([0.1] * 2, "a"), runs([0.1] * 2, "b"), "as-written")
    (said,) = notes(a, replace(b, experiment="mine-2"))
    assert said.startswith("A's and B's runs were not interleaved")
