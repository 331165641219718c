"""A sweep before and after its runs: what the command line changes, what another start finds."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from spikelab import paths
from spikelab.errors import UsageError
from spikelab.experiments import session
from spikelab.experiments.session import TimeLeft
from spikelab.experiments.sweep import Changes, new_state, only_rates_differ, planned
from spikelab.plans.load import changed, load_plan, make_plan, plan_of
from spikelab.plans.model import Plan
from spikelab.results.experiment import ExperimentState
from spikelab.results.run import RunRecord
from spikelab.run import RunOptions
from tests.unit.records import plain_record, plain_step

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
    state = new_state(Changes(["rate=20,40"], 2).applied(source), OPTIONS)
    state.save()
    return state


def resumed(source: Plan, options: RunOptions = OPTIONS) -> ExperimentState | None:
    return session.resume("sweep", Changes(["rate=20,40"], 2).applied(source), options)


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
    first, second = new_state(blocks, OPTIONS), new_state(blocks, OPTIONS)
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
    assert session.resume("comparison", source, OPTIONS) is None
    assert resumed(changed(source, {"ms": 1})) is None
    assert resumed(make_plan(replace(source.source, sinks=["influxdb"]))) is None
    assert resumed(source) is not None
    state.state = "finished"
    state.save()
    assert resumed(source) is None


def test_no_header_stands_in_the_state(source: Plan) -> None:
    assert "not-for-the-state" not in json.dumps(begun(source).to_json())


def test_the_time_left_is_learned_from_the_runs() -> None:
    left = TimeLeft()
    assert left.seconds([10, 20]) == 30
    left.took(10, 14)
    left.took(20, 22)
    assert left.seconds([10, 20]) == 36
    left.took(100, 0)
    assert left.seconds([1]) == 0


def test_each_run_is_planned_by_its_own_values(source: Plan) -> None:
    seconds = planned(source, begun(source))
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
