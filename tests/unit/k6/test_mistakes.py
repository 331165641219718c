"""A mistake in a plan or a variable stops k6's scripts with one line that names the cure."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from spikelab import paths
from tests.support.k6_scripts import K6, needs_k6

pytestmark = needs_k6


def inspect(script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Reads the options without a run."""
    words = [word for name, value in variables.items() for word in ("-e", f"{name}={value}")]
    command = [str(K6), "inspect", *words, str(paths.K6 / f"{script}.js")]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def mistake(script: str, **variables: str) -> str:
    said = inspect(script, **variables)
    assert said.returncode == 108, said.stdout + said.stderr
    assert len(said.stderr.splitlines()) == 1
    return said.stderr.replace('\\"', '"')


@pytest.mark.parametrize(
    ("script", "variables", "line"),
    [
        ("steady", {"RATE": "x"}, 'phase "steady": x rate; give requests per second'),
        ("steady", {"RATE": "-1"}, "-1 rate; give requests per second, a number above 0 (RATE=…)"),
        ("steady", {"RATE": "5", "VUS": "5"}, "VUS and RATE: give one"),
        ("steady", {"RATE": "5,5"}, 'phase "steady-5" stands twice'),
        ("steady", {"RATE": "5", "PERIOD": "1s"}, "PERIOD=1s: is of no use here"),
        ("steady", {"VUS": "5", "MOST_USERS": "9"}, "it belongs to RATE=…"),
        ("steady", {"MOST_USERS": "0"}, "most_users 0; give a whole number from 1 on"),
        ("steady", {"VUS": "5", "RAMP_UP": "2m"}, "ramp_up 2m is longer than its duration 1m"),
        ("steady", {"VUS": "5", "PERIOD": "1"}, "write a number with a unit, such as 250ms"),
        ("steady", {"DURATION": "5"}, 'DURATION: duration "5": write a number with a unit'),
        ("steady", {"DURATION": "0s"}, "duration: give 1s or more (DURATION=…)"),
        ("steady", {"TIMEOUT": "0s"}, "request timeout: give one above 0s (TIMEOUT=…)"),
        ("steady", {"BASE_URL": "localhost"}, 'url "localhost": give one of a server'),
        ("steady", {"SLO": "fast"}, 'slo "fast": not understood; write it like'),
        ("step", {"RATE": "1,2"}, "step.js runs one phase, not 2; steady.js runs several"),
        ("ramp", {"VUS": "5"}, 'ramp.js does not run kind "users"; steady.js does'),
        ("ramp", {"RATE": "0"}, "a ramp from 0 to 0; give requests per second (RATE=…)"),
        ("spike", {"RATE": "5"}, 'spike.js does not run kind "rate"'),
        ("spike", {"VUS": "1.5"}, "1.5 users; give a whole number from 1 on (VUS=…)"),
        ("bodies", {"SIZES": "1k"}, 'SIZES: "1k" is no size; write it like 500B, 10kB'),
    ],
)
def test_a_wrong_variable_by_hand_is_one_line(
    script: str, variables: dict[str, str], line: str
) -> None:
    assert line in mistake(script, **variables)


PLAN: dict[str, Any] = {
    "schema": 1,
    "testid": "t1",
    "target": {"url": "http://127.0.0.1:1"},
    "request": {"method": "GET", "path": "/", "headers": {}, "timeout": "2s", "keep_alive": True},
    "phases": [{"name": "p1", "kind": "rate", "value": 5, "start": "0s", "duration": "1s"}],
    "slo": [],
    "events": None,
}


def changed(**keys: object) -> dict[str, Any]:
    return {**PLAN, "phases": [{**PLAN["phases"][0], **keys}]}


@pytest.mark.parametrize(
    ("script", "plan", "line"),
    [
        ("spike", PLAN, 'kind "rate" is not for spike.js, which runs kind "users"'),
        ("steady", changed(kind="waves"), 'steady.js, which runs kind "rate" and "users"'),
        ("steady", changed(name="spikelab-1"), "are the lab's own; give another"),
        ("steady", changed(start="soon"), 'phase "p1": start: duration "soon"'),
        ("steady", changed(body_bytes=-1), "body_bytes -1; give a whole number from 0 on"),
        ("steady", changed(url="ftp://x"), 'url "ftp://x": give one of a server'),
        ("steady", {**PLAN, "phases": PLAN["phases"] * 2}, 'phase "p1" stands twice'),
        ("steady", {**PLAN, "phases": []}, "phases: there is none"),
        ("steady", {**PLAN, "slo": ["p95 < 1"]}, 'slo "p95 < 1": not understood'),
        ("steady", {**PLAN, "schema": 2}, "schema 2; these scripts read 1"),
        ("steady", {**PLAN, "request": None}, 'the key "request" is missing'),
    ],
)
def test_a_mistake_in_a_plan_is_one_line(
    tmp_path: Path, script: str, plan: dict[str, Any], line: str
) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan))
    assert line in mistake(script, LAB_PLAN=str(file))


def test_a_plan_that_is_not_there_is_one_line() -> None:
    assert "give the absolute path of a plan in JSON" in mistake("steady", LAB_PLAN="/nowhere")


@pytest.mark.parametrize("script", [path.stem for path in sorted(paths.K6.glob("*.js"))])
def test_every_script_runs_as_it_stands(script: str) -> None:
    said = inspect(script)
    assert said.returncode == 0, said.stderr
    options = json.loads(said.stdout)
    phases = [name for name in options["scenarios"] if not name.startswith("spikelab-")]
    assert phases
    for name in phases:
        assert "count==0" in str(options["thresholds"][f"dropped_iterations{{scenario:{name}}}"])
