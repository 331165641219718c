"""A sweep: what the command line changes, the order of its runs, what another start finds,
and which rates count as held."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from spikelab import paths
from spikelab.errors import UsageError
from spikelab.experiments.session import Experiment
from spikelab.experiments.sweep import (
    ORDERS,
    Changes,
    Order,
    by_variant,
    cells_in_order,
    draw_seed,
    held_rates,
    new_sweep,
    only_rates_differ,
)
from spikelab.objectives import Verdict
from spikelab.plans.load import changed, load_plan, make_plan, plan_of
from spikelab.plans.model import Plan
from spikelab.results.experiment import ExperimentState
from spikelab.results.run import RunRecord, Step
from spikelab.run import RunOptions
from tests.support.records import plain_record, plain_step

PLAN = """
name: mine
about: two variants
script: steady
parameters:
  rate: {about: Requests a second, default: 20, minimum: 1, maximum: 1000}
  ms: {about: Service time in ms, default: 0}
request:
  path: "/hello?ms=${ms}"
  headers: {Authorization: Bearer not-for-the-state}
phases:
  - {name: steady, kind: rate, value: "${rate}", duration: 1s}
variants:
  - {name: slow, set: {ms: 20}}
  - {name: other, url: "http://127.0.0.1:1"}
"""


OPTIONS = RunOptions(labels={"commit": "abc"})


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    (tmp_path / "mine.yaml").write_text(PLAN)
    return load_plan(str(tmp_path / "mine.yaml"))


def record(testid: str, valid: bool = True, rates: tuple[float | None, ...] = (20,)) -> RunRecord:
    steps = [plain_step(1.0, rate) for rate in rates]
    return plain_record(*steps, testid=testid, valid=valid)


def begun(source: Plan) -> ExperimentState:
    state = new_sweep(Changes(["rate=20,40"], 2).applied(source), OPTIONS).state
    state.save()
    return state


def resumed(source: Plan, options: RunOptions = OPTIONS) -> ExperimentState | None:
    found = new_sweep(Changes(["rate=20,40"], 2).applied(source), options).resumed()
    return found.state if found else None


def test_the_command_line_changes_values_repeats_order_and_seed(source: Plan) -> None:
    changed = Changes(["rate=20, 40", "ms=1"], 3, "blocks", 7)
    # A value that a variant has of its own would be set twice.
    with pytest.raises(UsageError, match="the sweep gives 'ms' its values"):
        changed.applied(source)
    plan = replace(changed, values=["rate=20, 40"]).applied(source)
    assert plan.sweep is not None
    assert plan.sweep.values == {"rate": [20, 40]}
    assert (plan.repeats, plan.sweep.order, plan.sweep.seed) == (3, "blocks", 7)


def test_a_seed_is_drawn_recorded_and_no_part_of_what_was_asked(source: Plan) -> None:
    blocks = Changes(["rate=20,40"], order="blocks").applied(source)
    first, second = new_sweep(blocks, OPTIONS).state, new_sweep(blocks, OPTIONS).state
    assert first.seed is not None
    assert first.seed != second.seed
    assert first.digest == second.digest
    assert begun(source).seed is None


def test_a_cell_s_plan_has_the_values_of_its_variant_and_its_own_and_its_url(
    source: Plan,
) -> None:
    slow = plan_of(source, {"rate": 40}, source.variant("slow"))
    assert (slow.request.path, slow.phases[0].value, slow.foreign_urls) == (
        "/hello?ms=20",
        40,
        set(),
    )
    other = plan_of(source, {}, source.variant("other"))
    assert (other.request.path, other.foreign_urls) == ("/hello?ms=0", {"http://127.0.0.1:1"})
    with pytest.raises(UsageError, match="has no variant 'third'"):
        source.variant("third")


def test_the_same_command_goes_on_with_what_its_records_say(source: Plan) -> None:
    state = begun(source)
    done, killed, lost, spoiled = state.cells[:4]
    done.testid = "1"
    # Its run ended in the moment in which the lab was killed.
    killed.attempts = ["2", "3"]
    lost.testid = "gone"
    spoiled.attempts = ["4", "never-begun"]
    state.save()
    for testid in ("1", "3"):
        record(testid).save()
    for testid in ("2", "4"):
        record(testid, valid=False).save()
    found = resumed(source)
    assert found is not None
    assert found.experiment == state.experiment
    assert [cell.testid for cell in found.cells[:4]] == ["1", "3", None, None]
    assert [cell.attempts for cell in found.cells[:4]] == [[], ["2"], [], ["4"]]


def test_another_command_or_a_finished_experiment_is_not_gone_on_with(source: Plan) -> None:
    state = begun(source)
    assert resumed(source, RunOptions()) is None
    assert Experiment.new("comparison", source, OPTIONS).resumed() is None
    assert resumed(changed(source, {"ms": 1})) is None
    assert resumed(make_plan(replace(source.source, sinks=["influxdb"]))) is None
    assert resumed(source) is not None
    state.state = "finished"
    state.save()
    assert resumed(source) is None


def test_no_header_stands_in_the_state(source: Plan) -> None:
    assert "not-for-the-state" not in json.dumps(begun(source).to_json())


def test_each_run_is_planned_by_its_own_values(source: Plan) -> None:
    seconds = Experiment(source, OPTIONS, begun(source)).planned_seconds()
    assert len(seconds) == 8
    assert len(set(seconds)) == 1


def test_rates_are_judged_together_only_where_they_are_all_that_differs() -> None:
    one, other = record("1"), record("2")
    assert only_rates_differ([one, other])
    other.values = {"ms": 5}
    assert not only_rates_differ([one, other])
    assert not only_rates_differ([one, record("3", rates=(None,))])
    phases = plain_record(*(plain_step(name=name) for name in ("plain", "tls")))
    assert not only_rates_differ([phases])
    assert not only_rates_differ([])


RATES = {"rate": [200, 400]}


def names(order: Order, repeats: int = 2, seed: int = 1) -> list[str]:
    cells = cells_in_order(RATES, ["off", "on"], repeats, order, seed)
    return [cell.name for cell in cells]


def test_abba_turns_values_and_variants_round_in_every_second_repeat() -> None:
    assert names("abba", repeats=4) == [
        "rate=200 off #1",
        "rate=200 on #1",
        "rate=400 off #1",
        "rate=400 on #1",
        "rate=400 on #2",
        "rate=400 off #2",
        "rate=200 on #2",
        "rate=200 off #2",
        "rate=400 off #3",
        "rate=400 on #3",
        "rate=200 off #3",
        "rate=200 on #3",
        "rate=200 on #4",
        "rate=200 off #4",
        "rate=400 on #4",
        "rate=400 off #4",
    ]


@pytest.mark.parametrize("values", [2, 3, 5])
def test_in_abba_no_value_keeps_its_place(values: int) -> None:
    """Over two repeats a drift in a line weighs on all alike; over all of them each value has been
    at every place."""
    rates = list(range(values))
    cells = cells_in_order({"rate": rates}, ["off", "on"], 2 * values, "abba", 0)
    places: dict[object, list[int]] = {}
    for place, cell in enumerate(cells):
        places.setdefault((cell.values["rate"], cell.variant), []).append(place % (2 * values))
    for each in places.values():
        assert {one + other for one, other in zip(each[::2], each[1::2], strict=True)} == {
            2 * values - 1
        }
    by_rate = [{place // 2 for place in places[rate, "off"]} for rate in rates]
    assert by_rate == [set(rates)] * values


def test_as_written_is_the_same_in_every_repeat() -> None:
    assert names("as-written")[4:] == [
        "rate=200 off #2",
        "rate=200 on #2",
        "rate=400 off #2",
        "rate=400 on #2",
    ]


def test_blocks_are_whole_repeats_each_shuffled_by_the_seed() -> None:
    shuffled = names("blocks", repeats=20, seed=7)
    assert shuffled == names("blocks", repeats=20, seed=7)
    assert shuffled != names("blocks", repeats=20, seed=8)
    blocks = [shuffled[at : at + 4] for at in range(0, 80, 4)]
    for repeat, block in enumerate(blocks, 1):
        assert sorted(block) == sorted(
            f"rate={rate} {variant} #{repeat}" for rate in (200, 400) for variant in ("off", "on")
        )
    orders = {tuple(name.rpartition(" ")[0] for name in block) for block in blocks}
    assert len(orders) > 10


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_has_every_cell_once(order: Order) -> None:
    assert Counter(names(order, repeats=3)) == Counter(names("as-written", repeats=3))


def test_several_parameters_combine_and_without_any_the_variants_remain() -> None:
    grid = cells_in_order({"rate": [1, 2], "ms": [5, 6]}, [], 1, "abba", 0)
    assert [tuple(cell.values.values()) for cell in grid] == [(1, 5), (1, 6), (2, 5), (2, 6)]
    assert {cell.variant for cell in grid} == {None}
    plain = cells_in_order({}, ["a", "b"], 2, "abba", 0)
    assert [(cell.variant, cell.repeat) for cell in plain] == [
        ("a", 1),
        ("b", 1),
        ("b", 2),
        ("a", 2),
    ]


def test_a_drawn_seed_fits_into_a_number_that_every_reader_of_json_keeps() -> None:
    assert all(0 <= draw_seed() < 2**53 for _ in range(100))


def step(
    rate: float | None, verdict: Verdict, variant: str | None = "on", started_share: float = 1.0
) -> Step:
    started_rate = None if rate is None else round(rate * started_share, 6)
    return plain_step(rate=rate, variant=variant, started_rate=started_rate, verdict=verdict)


def judged(*steps: Step) -> tuple[object, object, list[float], list[float]]:
    answer = held_rates(by_variant(steps)["on"])
    return (
        answer.highest_passing_rate,
        answer.lowest_failing_rate,
        answer.inconclusive,
        answer.not_reached,
    )


def test_where_all_rates_pass_the_highest_is_held() -> None:
    assert judged(step(200, "pass"), step(400, "pass")) == (400, None, [], [])


def test_where_all_rates_fail_none_is_held() -> None:
    assert judged(step(400, "fail"), step(200, "fail")) == (None, 200, [], [])


def test_a_rate_above_one_that_was_not_held_does_not_count() -> None:
    steps = (step(200, "pass"), step(400, "fail"), step(600, "pass"))
    assert judged(*steps) == (200, 400, [], [])


def test_repeats_that_disagree_are_inconclusive_and_stop_what_is_held() -> None:
    steps = (step(200, "pass"), step(400, "pass"), step(400, "fail"), step(600, "pass"))
    assert judged(*steps) == (200, None, [400], [])


def test_a_repeat_that_decided_nothing_makes_its_rate_inconclusive() -> None:
    assert judged(step(200, "pass"), step(200, "inconclusive")) == (None, None, [200], [])


def test_a_rate_that_one_repeat_did_not_start_is_not_reached() -> None:
    steps = (step(200, "pass"), step(400, "pass"), step(400, "fail", started_share=0.979))
    assert judged(*steps) == (200, None, [], [400])


@pytest.mark.parametrize("rate", [7, 33.3, 850, 1000, 12345])
def test_a_rate_is_reached_from_98_percent_started(rate: float) -> None:
    assert judged(step(rate, "pass", started_share=0.98))[0] == rate
    assert judged(step(rate, "pass", started_share=0.9799))[3] == [rate]


def test_variants_are_judged_apart_and_closed_loops_not_at_all() -> None:
    found = by_variant(
        [step(2, "pass", "b"), step(1, "pass", "a"), step(1, "fail", None), step(None, "pass")]
    )
    assert list(found) == ["", "a", "b"]
    assert held_rates(found[""]).lowest_failing_rate == 1
