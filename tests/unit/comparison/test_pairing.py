"""What names mean on the command line, baselines, the runs that a plan's comparison needs, and
which runs have no verdict."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from spikelab import paths
from spikelab.cli import imports
from spikelab.comparison import experiment
from spikelab.comparison.pairing import (
    baselines,
    find_arm,
    mark_baseline,
    no_verdict,
    pair_up,
    two_arms,
)
from spikelab.comparison.verdict import ComparisonQuestion, compare_arms
from spikelab.errors import UsageError
from spikelab.experiments.session import restarts
from spikelab.plans.load import load_plan, plan_files
from spikelab.plans.model import Plan
from spikelab.results.experiment import CellState, ExperimentState
from spikelab.results.run import RunRecord
from spikelab.run import RunOptions
from tests.support.comparison_runs import START, arms, runs, step
from tests.support.comparison_runs import record as record_of

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


@pytest.fixture
def vegeta() -> str:
    imports.run("vegeta", VEGETA, [], None)
    return str(next(RunRecord.read_all()).experiment)


def saved(name: str, a: list[float], b: list[float]) -> ExperimentState:
    """An experiment of two variants whose runs are recorded."""
    state = ExperimentState(
        experiment=name, kind="comparison", plan="mine", digest="", started=START, order="abba"
    )
    state.state = "finished"
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
    found = compare_arms(a, b, ComparisonQuestion())
    assert (found.verdict, found.interleaved, found.results[0].verdict) == (None, False, None)
    assert found.results[0].ratio == pytest.approx(1.5)
    assert "A's and B's runs were not taken in turn" in found.summary
    swapped = two_arms([f"{second.experiment}:slow", "baseline"])
    assert compare_arms(*swapped, ComparisonQuestion()).results[0].ratio == pytest.approx(2 / 3)
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
        experiment.new_comparison(experiment.identical_arms(source), RunOptions(), question)


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


def test_identical_arms_run_as_the_comparison_does(tmp_path: Path) -> None:
    source = plan(tmp_path)
    question = ComparisonQuestion.of(source.compare)
    chosen = experiment.choose_variants(source, None, ["slow"])
    compared = experiment.new_comparison(chosen, RunOptions(), question).state
    identical = experiment.identical_arms(source)
    state = experiment.new_comparison(identical, RunOptions(), question).state
    again = {"fast": "fast", "slow": "fast-again"}
    assert [(cell.values, cell.variant, cell.repeat) for cell in state.cells] == [
        (cell.values, again[str(cell.variant)], cell.repeat) for cell in compared.cells
    ]
    assert state.arms["fast"] == state.arms["fast-again"] != compared.arms["slow"]
    for cell in state.cells:
        record = comparison_record(cell)
        record.save()
        cell.testid = record.testid
    result = experiment.compare_identical_arms(state, question)
    assert (result.verdict, result.interleaved) == ("equivalent", True)
    assert result.noise is not None
    assert [each.metric for each in result.noise] == ["p50", "p99", "throughput"]
    # A B, B A, A B …: the first run of every second pair is B's.
    order = [cell.testid for cell in state.cells if cell.values == {"rate": 200}]
    pairs = result.results[0].pairs
    assert [(order.index(p.a_run), order.index(p.b_run)) for p in pairs[:3]] == [
        (0, 1),
        (3, 2),
        (4, 5),
    ]


def comparison_record(cell: CellState) -> RunRecord:
    figures = step(0.1, variant=cell.variant, repeat=cell.repeat)
    return record_of(figures, values=dict(cell.values))


@pytest.mark.parametrize("settings", [("100", "500"), ("100", "100")])
def test_identical_arms_restart_the_target_where_the_comparison_does(
    tmp_path: Path, settings: tuple[str, str]
) -> None:
    ours, theirs = (f"settings: {{TOMCAT_MAX_THREADS: {value}}}" for value in settings)
    text = PLAN.replace("{name: fast}", f"{{name: fast, {ours}}}")
    for changes in ("set: {ms: 30}", "set: {ms: 40}"):
        text = text.replace(changes, f"{theirs}, {changes}")
    source = plan(tmp_path, text)
    question = ComparisonQuestion.of(source.compare)
    compared = experiment.new_comparison(source, RunOptions(), question)
    identical = experiment.new_comparison(
        experiment.identical_arms(source), RunOptions(), question, fresh=restarts(source)
    )
    assert compared.fresh is identical.fresh is (settings[0] != settings[1])
    identical.state.save()
    resumed = identical.resumed()
    assert resumed is not None
    assert resumed.fresh is identical.fresh


def reason(order: str, *, swapped: bool = False) -> str | None:
    """Why A and B, each begun before the other in every pair, have no verdict."""
    a, b = runs([0.1] * 6, "a"), runs([0.1] * 6, "b")
    for number, (one, other) in enumerate(zip(a, b, strict=True)):
        one.started, other.started = (
            START + timedelta(minutes=2 * number + place) for place in (0, 1)
        )
    ours, theirs = arms(a, b, order)[:: -1 if swapped else 1]
    return no_verdict(ours, theirs, pair_up(ours, theirs), declared=False)


def test_a_side_that_is_always_first_has_no_verdict() -> None:
    assert (reason("as-written") or "").startswith("A ran first in every pair (order: as-written)")
    assert (reason("as-written", swapped=True) or "").startswith("B ran first in every pair")
    # In a shuffled order it is chance.
    assert reason("blocks") is None
    # As written, but the runs changed places.
    a, b = runs([0.1] * 6, "a"), runs([0.1] * 6, "b")
    a[1].started, b[1].started = b[1].started, a[1].started
    ours = arms(a, b, "as-written")
    assert no_verdict(*ours, pair_up(*ours), declared=False) is None


def test_a_pair_of_which_one_was_run_again_later_is_left_out() -> None:
    """What changed on the machine meanwhile would count as a difference."""
    a, b = runs([0.1] * 7, "a"), runs([0.1] * 7, "b")
    b[2].started += timedelta(days=30)
    found = compare_arms(*arms(a, b), ComparisonQuestion("p95"))
    assert [(each.repeat, each.reason) for each in found.left_out] == [
        (3, "runs of other repeats came between A's and B's")
    ]
    # With its A it is a pair like any other.
    a[2].started += timedelta(days=30)
    assert compare_arms(*arms(a, b), ComparisonQuestion("p95")).left_out == []


def test_all_of_b_after_all_of_a_is_no_interleaving() -> None:
    """None of B's runs was valid at first; the same command tried them again the next day."""
    a, b = runs([0.100, 0.101, 0.099, 0.102, 0.098, 0.100], "a"), runs([0.2] * 6, "b")
    for each in b:
        each.started += timedelta(days=30)
    found = compare_arms(*arms(a, b), ComparisonQuestion("p95"))
    assert (found.verdict, len(found.left_out)) == ("inconclusive", 6)


def test_a_comparison_in_the_order_as_written_is_refused_before_any_run(tmp_path: Path) -> None:
    text = PLAN.replace("sweep: {values", "sweep: {order: as-written, values")
    source = plan(tmp_path, text)
    with pytest.raises(UsageError, match=r"line \d+: order: as-written has A run before B"):
        experiment.new_comparison(source, RunOptions(), ComparisonQuestion.of(source.compare))


def test_an_experiment_that_is_not_finished_has_no_verdict_yet() -> None:
    state = saved("20261121T010203Z-mine-aaaa", [0.1] * 7, [0.2] * 7)
    names = [f"{state.experiment}:fast", f"{state.experiment}:slow"]
    assert compare_arms(*two_arms(names), ComparisonQuestion()).verdict == "worse"
    state.state = "stopped"
    state.save()
    found = compare_arms(*two_arms(names), ComparisonQuestion())
    assert found.verdict is None
    assert "is not finished, and looking early makes false verdicts likelier" in found.summary


def test_imported_runs_have_a_verdict_where_the_user_says_that_they_were_taken_in_turn() -> None:
    a, b = (replace(arm, order=None) for arm in arms(runs([0.1] * 6, "a"), runs([0.2] * 6, "b")))
    unknown = compare_arms(a, b, ComparisonQuestion())
    assert unknown.verdict is None
    assert "is not known; --interleaved says" in unknown.summary
    declared = compare_arms(a, b, ComparisonQuestion(interleaved=True))
    assert (declared.verdict, declared.interleaved) == ("worse", None)
    assert any("is said by --interleaved" in note for note in declared.notes)
    other = replace(b, experiment="mine-2", order="abba")
    with pytest.raises(UsageError, match="--interleaved: this is for imported runs"):
        compare_arms(replace(a, order="abba"), other, ComparisonQuestion(interleaved=True))
