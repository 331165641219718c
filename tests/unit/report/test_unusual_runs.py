"""Reports of runs that are not as usual: without an answer, a rate, an objective or a judged step,
with other settings, phases side by side, or not done."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from spikelab import paths, series, signals
from spikelab.cli import output
from spikelab.comparison.pairing import arm_of_experiment
from spikelab.comparison.verdict import ComparisonQuestion, compare_arms
from spikelab.report import sentences, style
from spikelab.report.content import limits, method, runs_table
from spikelab.report.experiment_figures import by_cell, predicted
from spikelab.report.formats import FORMATS, rendered
from spikelab.report.steps import RATE_HELD, checks, curves
from spikelab.report.target_tables import target_tables
from spikelab.results.comparison import ComparisonRecord, Side
from spikelab.results.experiment import CellState, ExperimentState
from spikelab.results.lookup import Subject, find
from spikelab.results.run import (
    Connections,
    Errors,
    Latency,
    Prediction,
    RunRecord,
    Step,
    TargetRecord,
    Totals,
)
from spikelab.settings import load_target_declaration
from spikelab.units import MISSING
from tests.support.comparison_runs import runs as session_runs
from tests.support.records import START, plain_record, plain_step

FAST = dict.fromkeys(Latency.model_fields, 0.1)


@pytest.fixture(autouse=True)
def results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    return tmp_path


def answered(**changes: Any) -> Step:
    latency = Latency(**FAST)
    figures = {"latency_seconds": latency, "latency_with_failures_seconds": latency, **changes}
    return plain_step(**figures)


def run(number: int, *steps: Step, **changes: Any) -> RunRecord:
    return plain_record(*steps, testid=f"20261121T0102{number:02}Z-mine-0a1b", **changes)


def tomcat(**settings: int) -> TargetRecord:
    known = load_target_declaration().resolve(settings)
    return TargetRecord(url="http://127.0.0.1:8080", settings=known, effective={}, runtime="host")


def saved(*records: RunRecord, cells: list[CellState] | None = None) -> Subject:
    """A sweep of these runs."""
    for record in records:
        record.save()
    state = ExperimentState(
        experiment="some", kind="sweep", plan="mine", digest="d", started=START, state="finished"
    )
    own = [CellState(values=record.values, testid=record.testid) for record in records]
    state.cells = own if cells is None else cells
    state.save()
    return find("some")


def only(record: RunRecord) -> Subject:
    record.save()
    return find(record.testid)


def test_settings_of_runs_without_variants_are_set_side_by_side() -> None:
    records = [
        run(number, answered(), target=tomcat(TOMCAT_MAX_THREADS=threads))
        for number, threads in enumerate((100, 500))
    ]
    table = target_tables(records)[0]
    assert table.title == "Settings that differ between the runs"
    assert list(table.columns) == ["run", "TOMCAT_MAX_THREADS"]
    shown = [tuple(row) for row in table.rows]
    assert shown[:2] == [(records[0].testid, "100"), (records[1].testid, "500")]


def test_settings_of_a_variant_are_named_by_what_was_swept() -> None:
    records = [
        run(
            number,
            answered(variant="on"),
            target=tomcat(TOMCAT_MAX_THREADS=threads),
            values={"threads": threads, "rate": rate},
        )
        for number, (threads, rate) in enumerate([(100, 1), (100, 2), (500, 1), (500, 2)])
    ]
    rows = target_tables(records)[0].rows
    assert [row[0] for row in rows] == ["on threads=100", "on threads=500", "default"]


def test_settings_that_variants_share_stand_once() -> None:
    records = [
        run(number, answered(variant=variant), target=tomcat(TOMCAT_MAX_THREADS=threads))
        for number, (variant, threads) in enumerate([("a", 100), ("b", 100), ("c", 500)])
    ]
    table = target_tables(records)[0]
    assert list(table.columns) == ["variant", "TOMCAT_MAX_THREADS"]
    assert [row[0] for row in table.rows] == ["a, b", "c", "default"]


def test_builds_of_the_target_are_named_where_they_differ() -> None:
    plain, replicas = tomcat(), tomcat()
    replicas.compose = ["docker-compose.replicas.yml@sha256:0a1b"]
    records = [
        run(0, answered(variant="off"), target=plain),
        run(1, answered(variant="off-3"), target=replicas),
    ]
    table = target_tables(records)[-1]
    assert table.title == "Builds of the target that differ between the runs"
    rows = [(row[0], row[2]) for row in table.rows]
    assert rows == [("off", MISSING), ("off-3", "docker-compose.replicas.yml")]
    assert not any("Builds" in table.title for table in target_tables(records[:1]))


def phases(number: int, slow: str = "") -> RunRecord:
    """Two judged phases at one rate, as of a plan that sets topologies side by side."""
    steps = [
        answered(name=name, phase=name, verdict="fail" if name == slow else "pass")
        for name in ("bare", "tunnel")
    ]
    return run(number, *steps, verdict="fail" if slow else "pass")


def test_phases_at_one_rate_are_no_repeats_of_it() -> None:
    subject = saved(phases(1, slow="tunnel"), phases(2, slow="tunnel"))
    table = runs_table(subject.records)
    assert table
    assert table.columns[0] == "phase"
    assert [(row[0], row[-1]) for row in table.rows] == [("bare", "held"), ("tunnel", "failed")]
    assert table.rows[0][2] == "100 | 100"
    page = rendered(subject, "html")
    assert "Success by run" in page
    assert "over the achieved rate" not in page


def test_a_ladder_of_rates_stays_one_curve() -> None:
    steps = [answered(name=str(rate), phase=str(rate), rate=rate) for rate in (100.0, 200.0)]
    subject = saved(run(1, *steps), run(2, *steps))
    _, sentence = sentences.of_runs(subject)
    assert sentence == "It holds 200/s; no tested rate failed."


def test_held_rates_stand_beside_what_the_threads_can_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    predicted = {"few": 150.0, "many": 1500.0}
    records = [
        run(
            10 * place + rate // 100,
            answered(rate=float(rate), variant=variant, name=f"{rate}", phase=f"{rate}"),
            predicted_rate=predicted[variant],
        )
        for place, variant in enumerate(predicted)
        for rate in (100, 200)
    ]
    subject = saved(*records)
    few = (
        "holds 200/s; no tested rate failed; 150/s predicted from threads and service time: "
        "not as predicted, more than 162/s passed"
    )
    assert f"Few {few}. Many " in sentences.of_runs(subject)[1]
    assert subject.state
    output.show_sweep(subject.state)
    assert f"few: {few}\n" in capsys.readouterr().out
    page = rendered(subject, "html")
    assert "Dotted upright: what is predicted" in page
    # 1,500/s stands in words alone: on an axis up to 200/s it would leave no room for the rest.
    assert "1,500/s predicted from threads and service time: not reached" in page
    drawn = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert drawn
    assert not any(">1,000<" in figure for figure in drawn)
    # Where a variant's runs have several, or one has none, there is none to name.
    records[0].predicted_rate = None
    records[2].predicted_rate = 1.0
    assert "predicted" not in sentences.of_runs(saved(*records))[1]


def test_runs_of_one_rate_with_other_values_are_no_repeats_of_it() -> None:
    records = [run(n, answered(), values={"threads": n}) for n in (1, 2)]
    assert curves(records) is None
    assert "threads=1" in rendered(saved(*records), "md").replace("\\", "")


def spike(**changes: Any) -> RunRecord:
    """Users of a moment of whom 30 get no answer before their timeout of 60 s."""
    figures = {"failures": 30, "start_spread_seconds": 0.1, "started_rate": None, **changes}
    step = answered(rate=None, **figures)
    step.ended = step.started + timedelta(seconds=60)
    told = Prediction(
        established_peak=10,
        established_least=10,
        established_most=10,
        good=70,
        good_least=70,
        good_most=70,
        failed=30,
        last_answer_seconds=12,
    )
    return run(1, step, prediction=told, connections=Connections(policy="close"))


@pytest.mark.parametrize(
    ("last", "shown"), [(12.5, "the last of them came after 12.5 s"), (None, "")]
)
def test_the_last_answer_is_the_last_good_one(last: float | None, shown: str) -> None:
    subject = only(spike(last_good_seconds=last))
    _, sentence = sentences.of_run(subject)
    assert (shown in sentence) if shown else ("came after" not in sentence)
    table = runs_table(subject.records)
    assert table
    cell = table.rows[0][list(table.columns).index("last good answer")]
    assert cell == ("12.5 s" if last else "–")


def test_where_nobody_was_answered_no_last_answer_came() -> None:
    latency = Latency()
    record = spike(failures=1000, latency_seconds=latency)
    _, sentence = sentences.of_run(only(record))
    assert "0 of 1,000 users got a good answer" in sentence
    assert "came after" not in sentence


def test_each_dot_has_the_colour_of_its_own_verdict() -> None:
    words = ("fail", "inconclusive", "pass")
    records = [run(n, answered(verdict=word)) for n, word in enumerate(words)]
    for figure in by_cell(records, []):
        for colour in (signals.Colour.GOOD, signals.Colour.FAILED, signals.Colour.INCONCLUSIVE):
            assert style.shade(colour).lower() in figure.svg
    assert style.INK.lower() in figure.svg


@pytest.mark.parametrize("slo", [[], ["p95 < 1s"]])
def test_a_figure_without_a_value_is_left_out(slo: list[str]) -> None:
    steps = [
        plain_step(rate=rate, failures=int(rate * 10), slo=slo, verdict="fail")
        for rate in (100.0, 200.0)
    ]
    subject = saved(*(run(n, step, verdict="fail") for n, step in enumerate(steps)))
    page = rendered(subject, "html")
    assert "Success over the achieved rate" in page
    assert "p95 over the achieved rate" not in page


@pytest.mark.parametrize("format_name", FORMATS)
def test_runs_without_a_judged_step_have_a_report(format_name: str) -> None:
    one = only(run(1, verdict="inconclusive"))
    several = saved(run(2, verdict="inconclusive"), run(3, verdict="inconclusive"))
    for subject in (one, several):
        assert rendered(subject, format_name)
    assert sentences.of_run(one) == ("inconclusive", "It has no judged step.")


def comparison(*records: RunRecord) -> Subject:
    for record in records:
        record.save()
    sides = [Side(name=name, plan="mine", runs=[]) for name in "ab"]
    for number, record in enumerate(records):
        sides[number % 2].runs.append(record.testid)
    ComparisonRecord(
        comparison="both",
        created=START,
        plan="mine",
        primary="p95",
        margin=0.05,
        a=sides[0],
        b=sides[1],
        interleaved=True,
        results=[],
        verdict=None,
        summary="",
    ).save()
    return find("both")


def test_a_comparison_does_not_count_runs_that_are_no_result() -> None:
    spoiled = run(3, answered(), valid=False, reasons=["the target died"], verdict="inconclusive")
    subject = comparison(run(1, answered()), run(2, answered()), spoiled)
    assert [record.testid for record in subject.spoiled] == [spoiled.testid]
    assert len(subject.records) == 2
    assert any("A is a (1 run), B is b (1 run)." in said for said in method(subject))
    assert f"{spoiled.testid} is no result: the target died" in limits(subject)


def test_without_an_objective_it_says_what_passed() -> None:
    subject = only(run(1, answered()))
    said = " ".join(method(subject))
    assert "No objective was given: a step passes when it started 98 % of its offered rate" in said
    assert "nothing is passed" not in said
    several = only(run(2, answered(name="a"), answered(name="b", rate=200.0)))
    assert sentences.of_run(several)[1].startswith("All 2 steps passed: ")


def test_a_dropped_request_is_no_success() -> None:
    step = answered(dropped=1000)
    assert step.success == Totals.of([step]).success == 0.5
    subject = only(run(1, step))
    head, row = rendered(subject, "csv").splitlines()
    assert row.split(",")[head.split(",").index("success")] == "0.5"


def test_junit_has_an_error_only_for_what_is_still_open() -> None:
    def spoiled(number: int) -> RunRecord:
        return run(number, valid=False, reasons=["died"], verdict="inconclusive")

    done, first, second = run(1, answered()), spoiled(2), spoiled(3)
    for record in (first, second):
        record.save()
    cells = [
        CellState(values={"rate": 1}, testid=done.testid, attempts=[first.testid]),
        CellState(values={"rate": 2}, attempts=[second.testid]),
        CellState(values={"rate": 3}),
    ]
    subject = saved(done, cells=cells)
    suite = ElementTree.fromstring(rendered(subject, "junit"))[0]
    found = {case.get("name"): [child.tag for child in case] for case in suite.iter("testcase")}
    assert first.testid not in found
    assert found[second.testid] == ["error"]
    assert found["rate=3 #1"] == ["skipped"]
    assert re.search(r'skipped message="not run"', rendered(subject, "junit"))
    # The page says of each attempt why it is no result.
    assert len(subject.spoiled) == 2


def test_a_run_of_which_nobody_was_answered_has_no_latency_over_time() -> None:
    record = run(1, plain_step(failures=1000, verdict="fail"), verdict="fail")
    record.save()
    points: dict[str, list[float | None]] = {signal.name: [0.0] * 10 for signal in series.LOAD}
    points |= {signal.name: [None] * 10 for signal in (signals.LATENCY_P50, signals.LATENCY_P95)}
    points[signals.LATENCY_P99.name] = [None] * 10
    series.Series(testid=record.testid, begun=START, step_seconds=1, points=points).save()
    page = rendered(find(record.testid), "html")
    assert "Rates and failures over time" in page
    assert "Latency over time" not in page


def test_a_spike_says_whether_it_came_as_predicted() -> None:
    record = spike(errors=Errors(request_timeout=30), last_good_seconds=12.5)
    assert record.prediction
    record.prediction.good_least = record.prediction.good_most = 970
    record.prediction.last_answer_least_seconds = 12
    record.prediction.last_answer_most_seconds = 13
    record.prediction.failure_classes = ["request_timeout"]
    as_it_was = rendered(only(record), "md").replace("\\", "")
    assert "It came as predicted: 3 of 4 figures measured, all within." in as_it_was
    assert "| last answer | 12.5 s | 12 s to 13 s | yes |" in as_it_was
    record.prediction.failure_classes = ["dial_timeout"]
    other = rendered(only(record), "md").replace("\\", "")
    assert "Not as predicted: failures request_timeout 30 (dial_timeout)." in other
    assert "| failures | request_timeout 30 | dial_timeout | no |" in other


def test_a_short_logarithmic_axis_has_no_tex() -> None:
    """Minor ticks of a range within a decade would be written as formulas."""
    seen = Connections(established_peak=1000, policy="keep-alive")
    sure = ("established_peak", "established_least", "established_most")
    sure += ("good", "good_least", "good_most")
    told = Prediction(**dict.fromkeys(sure, 1000), failed=0)
    record = run(1, answered(requests=1000, completed=1000), prediction=told, connections=seen)
    for figure in predicted([record]):
        assert ">1,000<" in figure.svg
        assert "$" not in figure.svg


def test_two_sessions_have_a_report_without_a_verdict() -> None:
    sessions = [session_runs([0.1] * 6, "x"), session_runs([0.12] * 6, "x")]
    for record in (record for records in sessions for record in records):
        record.save()
    a, b = (arm_of_experiment(n, r) for n, r in zip(("one", "two"), sessions, strict=True))
    found = compare_arms(a, b, ComparisonQuestion())
    found.save()
    subject = find(found.comparison)
    report = rendered(subject, "md")
    assert "No verdict" in report
    assert report.count("A's and B's runs were not taken in turn, so what changed") == 1
    assert re.search(r"\| p95 +\| 100 ms +\| 120 ms +\| ×1.200 +\|$", report, re.MULTILINE)
    assert method(subject)[-1].endswith("set side by side.")
    for said in ("interval", "Equivalent", "Holm", "pairs needed"):
        assert said not in report
    # An open answer, for who reads JUnit: neither a failure nor passed.
    case = ElementTree.fromstring(rendered(subject, "junit")).find(".//testcase")
    assert case is not None
    assert [child.tag for child in case] == ["skipped"]


def test_a_queue_that_was_left_is_said_beside_what_else_was_missed() -> None:
    step = answered(
        slo=["p95 < 1s"],
        slow={"p95 < 1s": 400},
        misses={"p95 < 1s": 400},
        late_answers=90,
        drain_seconds=4.0,
        verdict="fail",
    )
    seen = {each.name: (each.result, each.seen) for each in checks(step)}
    assert seen["p95 < 1s"][0] == "missed"
    assert seen[RATE_HELD] == ("missed", "a queue was left: the last answer came 4 s after it")
    in_time = step.model_copy(update={"late_answers": 1})
    assert {each.name: each.result for each in checks(in_time)}[RATE_HELD] == "met"
