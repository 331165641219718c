"""`./lab compare` on the real stack: a difference that is there, identical arms, single runs."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.lab import Lab, wait_until

# Runs as short as they can be: what is tested is the way, bench/comparisons.py has the figures. Two
# pairs more than the least: a busy machine spoils some.
pytestmark = pytest.mark.timed

PLAN = """\
name: arms
about: Two arms, of which one takes twice as long
script: steady
parameters:
  ms: {about: The service time, default: 20}
request: {path: "/hello?ms=${ms}", timeout: 3s}
phases:
  - {name: steady, kind: rate, value: 100, duration: 1s, most_users: 20}
variants:
  - {name: fast}
  - {name: slow, set: {ms: 40}}
repeats: 8
compare: {primary: p50, metrics: [p95, success]}
sinks: [prometheus]
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("plans") / "arms.yaml"
    file.write_text(PLAN)
    return file


@pytest.fixture(scope="module")
def answer(lab: Lab, plan: Path) -> dict[str, Any]:
    """Of a comparison that was interrupted and went on."""
    first = lab.start("compare", str(plan))
    wait_until(lambda: len(done(lab)) >= 2, 60, "two runs are done")
    first.send_signal(signal.SIGINT)
    _, said = first.communicate(timeout=60)
    assert first.returncode == 130, said
    before = done(lab)
    file = lab.home / "comparison.json"
    result = lab("compare", str(plan), "--json", str(file))
    assert result.returncode == 99, result.stdout + result.stderr
    assert f"{len(before)} of 16 runs are done" in result.stderr
    assert set(before) <= set(done(lab))
    assert len(done(lab)) == 16
    assert re.search(
        r"^worse: p50 of slow is ×[12]\.\d+ that of fast ", result.stdout, re.MULTILINE
    )
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def done(lab: Lab) -> list[str]:
    states = [json.loads(p.read_text()) for p in lab.home.glob("results/*-arms-*/experiment.json")]
    cells = next((state["cells"] for state in states if state["kind"] == "comparison"), [])
    return [cell["testid"] for cell in cells if cell["testid"]]


def test_a_difference_is_found_in_its_direction(lab: Lab, answer: dict[str, Any]) -> None:
    first = answer["results"][0]
    assert (first["metric"], first["primary"], first["verdict"]) == ("p50", True, "worse")
    assert 1.5 < first["low"] <= first["high"] < 2.5
    assert answer["interleaved"] is True
    assert len(first["pairs"]) + len(answer["left_out"]) == 8
    kept = lab.home / "results" / answer["comparison"] / "comparison.json"
    assert json.loads(kept.read_text()) == answer


def test_the_verdict_stands_in_the_history_of_b_s_runs(lab: Lab, answer: dict[str, Any]) -> None:
    rows = lab.influxdb.query('SELECT "run", "requests", "confidence" FROM "runs"')
    by_run = {row["run"]: row for row in rows}
    for testid in answer["b"]["runs"]:
        assert re.match(r"worse \(×[12]\.\d+, .* pairs\)$", by_run[testid]["confidence"])
        # A field more of the point that the run has, and no second point.
        assert by_run[testid]["requests"] > 0
    assert all(by_run[testid]["confidence"] is None for testid in answer["a"]["runs"])


def test_two_single_runs_are_set_side_by_side(lab: Lab, answer: dict[str, Any]) -> None:
    result = lab("compare", answer["a"]["runs"][0], answer["b"]["runs"][0])
    assert result.returncode == 3, result.stderr
    assert "no verdict: two single runs" in result.stdout
    assert re.search(r"^p95 +\d+\.?\d* ms +\d+\.?\d* ms +×\d\.\d{3}", result.stdout, re.MULTILINE)


def test_a_finished_comparison_has_the_same_verdict_again(lab: Lab, answer: dict[str, Any]) -> None:
    result = lab("compare", answer["a"]["name"], answer["b"]["name"], "--primary", "p50")
    assert (result.returncode, "worse: p50 of slow" in result.stdout) == (99, True), result.stdout
    # Another metric of the same runs is another look, of which 0.4 % may be wrong.
    other = lab("compare", answer["a"]["name"], answer["b"]["name"], "--primary", "p95")
    # On a busy machine a tail of so short runs is not decided at that.
    assert other.returncode in (99, 3)
    assert "look 2 at the same question" in other.stdout


def test_a_run_is_set_beside_the_marked_baseline_without_a_verdict(
    lab: Lab, answer: dict[str, Any]
) -> None:
    slow, fast = answer["b"]["name"], answer["a"]["name"]
    refused = lab("compare", fast)
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    assert "plan arms has no baseline" in refused.stderr
    assert lab("compare", "--baseline", slow).returncode == 0
    # These two were taken in turn.
    result = lab("compare", fast, "--primary", "p50", "--metrics", "p95,success")
    assert (result.returncode, "better: p50 of fast" in result.stdout) == (0, True), result.stdout
    assert f"baseline of arms: {slow}" in lab("runs").stdout


def test_two_sessions_are_set_side_by_side(lab: Lab, plan: Path, answer: dict[str, Any]) -> None:
    again = lab("compare", str(plan), "--fresh", "--label", "session=2", "--json", "-")
    # Whatever a busy machine says of it.
    assert again.returncode in (99, 3), again.stderr
    other = json.loads(again.stdout)["b"]["name"]
    assert lab("compare", "--baseline", answer["a"]["name"]).returncode == 0
    result = lab("compare", other, "--primary", "p50")
    assert result.returncode == 3, result.stdout + result.stderr
    assert "no verdict: A's and B's runs were not taken in turn" in result.stdout
    assert re.search(r"^p50 +\d+\.?\d* ms +\d+\.?\d* ms +×[12]\.\d{3}", result.stdout, re.MULTILINE)
    assert "better" not in result.stdout
    assert "worse" not in result.stdout


def test_identical_arms_show_the_lab_s_own_noise(lab: Lab, plan: Path) -> None:
    result = lab("compare", str(plan), "--aa")
    assert result.returncode == 0, result.stdout + result.stderr
    # One A/A comparison in twenty may be called a difference: only its noise is certain.
    share = r"\d+(\.\d+)? %"
    noise = rf"^p50 +[678] +{share} +{share} +(\d+|over 1,000) *$"
    assert re.search(noise, result.stdout, re.MULTILINE), result.stdout


def test_a_comparison_that_could_not_decide_is_refused(lab: Lab, plan: Path) -> None:
    few = plan.with_name("few.yaml")
    few.write_text(PLAN.replace("repeats: 8", "repeats: 5"))
    before = len(lab.records())
    result = lab("compare", str(few))
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert "needs at least 6 pairs (repeats: 6)" in result.stderr
    assert len(lab.records()) == before


def test_a_planned_look_that_decides_ends_the_runs(lab: Lab, plan: Path) -> None:
    longer = plan.with_name("longer.yaml")
    longer.write_text(PLAN.replace("repeats: 8", "repeats: 12"))
    before = len(lab.records())
    result = lab("compare", str(longer), "--looks", "2", "--label", "looks=2", "--json", "-")
    assert result.returncode == 99, result.stderr
    found = json.loads(result.stdout)
    assert (found["verdict"], found["looks"]) == ("worse", [6, 12])
    # A pair that a busy machine spoiled is left out, and the first look waits for another.
    taken = len(found["results"][0]["pairs"]) + len(found["left_out"])
    assert taken < 12
    assert found["confidence_level"] == pytest.approx(0.98)
    assert len(lab.records()) - before == 2 * taken
    state = lab.home / "results" / found["a"]["experiment"] / "experiment.json"
    assert json.loads(state.read_text())["state"] == "finished"
