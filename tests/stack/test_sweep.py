"""Sweeps: their order, and that one which is stopped at any point goes on and loses nothing."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from spikelab import paths
from tests.support.lab import Lab

SCHEMA = json.loads((paths.ROOT / "docs" / "experiment.schema.json").read_text())
PLAN = """
name: short-sweep
about: runs of a second
script: steady
parameters:
  rate: {about: Requests a second, default: 20, minimum: 1, maximum: 1000}
  ms: {about: Service time in ms, default: 0, minimum: 0}
request:
  path: "/hello?ms=${ms}"
  headers: {Authorization: Bearer not-for-the-state}
phases:
  - {name: steady, kind: rate, value: "${rate}", duration: 1s}
slo: [success >= 80%]
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "short-sweep.yaml"
    path.write_text(PLAN)
    return path


def until(process: "subprocess.Popen[str]", pattern: str) -> str:
    """Reads what it says until a line matches; returns all of it."""
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if re.search(pattern, line):
            return said
    raise AssertionError(f"it ended without '{pattern}': {said}")


def newest(lab: Lab) -> dict[str, Any]:
    path = sorted((lab.home / "results").glob("*/experiment.json"))[-1]
    state: dict[str, Any] = json.loads(path.read_text())
    return state


def runs_of(state: dict[str, Any]) -> list[str | None]:
    return [cell["testid"] for cell in state["cells"]]


def supervisor(lab: Lab, *command: str) -> None:
    socket = f"unix://{lab.home / 'run' / 'supervisor.sock'}"
    tool = str(paths.VENV / "bin" / "supervisorctl")
    subprocess.run([tool, "-s", socket, *command], check=True, capture_output=True)


def test_a_sweep_that_is_interrupted_and_killed_goes_on_to_its_end(lab: Lab, plan: Path) -> None:
    target = lab.url("TARGET_PORT")
    plan.write_text(
        PLAN + f"variants: [{{name: slow, set: {{ms: 20}}}}, {{name: other, url: '{target}'}}]\n"
        "cool_down: 500ms\n"
    )
    result = lab.home / "sweep.json"
    command = ["sweep", str(plan), "--values", "rate=20", "--repeats", "2", "--json", str(result)]

    # Ctrl-C in the second run.
    process = lab.start(*command)
    said = until(process, "run 2 of 4: rate=20 other #1")
    assert "4 runs, about" in said
    assert "run 1 of 4: rate=20 slow #1" in said
    until(process, "^run 20")
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 130, rest
    assert "1 of 4 runs are done: the same command goes on with run 2 of 4" in rest
    state = newest(lab)
    assert (state["state"], runs_of(state)[1:]) == ("stopped", [None] * 3)
    assert len(state["cells"][1]["attempts"]) == 1
    done = runs_of(state)[:1]

    # Killed between two runs.
    process = lab.start(*command)
    said = until(process, "^rate=20 other #1: pass")
    assert f"going on with {state['experiment']}: 1 of 4 runs are done" in said
    assert "run 1 of 4" not in said
    process.kill()
    process.communicate(timeout=10)
    state = newest(lab)
    assert (state["state"], runs_of(state)[:1]) == ("going", done)
    done = runs_of(state)[:2]
    assert None not in done

    # Killed in a run: the second repeat has the variants turned round.
    process = lab.start(*command)
    until(process, "run 3 of 4: rate=20 other #2")
    until(process, "^run 20")
    process.kill()
    process.communicate(timeout=10)
    # Whatever looks next says what became of it.
    assert lab("runs").returncode == 0
    state = newest(lab)
    assert (state["state"], state["reason"]) == ("stopped", "the lab was killed")

    finished = lab(*command)
    assert finished.returncode == 0, finished.stderr
    assert "2 of 4 runs are done" in finished.stderr
    state = json.loads(result.read_text())
    runs = state.pop("runs")
    jsonschema.validate(state, SCHEMA)
    assert state == newest(lab)
    assert (state["state"], state["reason"], state["order"]) == ("finished", None, "abba")
    assert "not-for-the-state" not in result.read_text()
    assert runs_of(state) == [run["testid"] for run in runs]
    assert runs_of(state)[:2] == done
    assert [len(cell["attempts"]) for cell in state["cells"]] == [0, 1, 1, 0]
    check_runs(runs, state, target)
    again = lab(*command[:-2], "--seed", "1", "--order", "nope")
    assert (again.returncode, len(again.stderr.splitlines())) == (2, 1)


def check_runs(runs: list[dict[str, Any]], state: dict[str, Any], target: str) -> None:
    steps = [run["steps"][0] for run in runs]
    order = [(step["variant"], step["repeat"]) for step in steps]
    assert order == [("slow", 1), ("other", 1), ("other", 2), ("slow", 2)]
    assert {run["experiment"] for run in runs} == {state["experiment"]}
    assert all(run["values"] == {"rate": 20} and run["valid"] for run in runs)
    assert all(step["latency_seconds"]["p50"] > 0.02 for step in (steps[0], steps[3]))
    assert all(step["latency_seconds"]["p50"] < 0.02 for step in steps[1:3])
    # Another url is another target, also where the lab's own answers there.
    assert [bool(run["target"]["settings"]) for run in runs] == [True, False, False, True]
    assert runs[1]["target"]["url"] == target
    answer = state["answer"]["variants"]
    assert {name: each["highest_passing_rate"] for name, each in answer.items()} == {
        "slow": 20,
        "other": 20,
    }
    times = [datetime.fromisoformat(run[key]) for run in runs for key in ("started", "ended")]
    assert times == sorted(times)
    assert times[6] - times[5] >= timedelta(milliseconds=500)


def test_a_store_that_stays_away_stops_a_sweep_which_goes_on_later(lab: Lab, plan: Path) -> None:
    command = ["sweep", str(plan), "--repeats", "2"]
    process = lab.start(*command)
    until(process, "^run 20")
    supervisor(lab, "stop", "prometheus")
    try:
        _, said = process.communicate(timeout=60)
        assert process.returncode == 1, said
        last = said.splitlines()[-1]
        assert "Prometheus (http" in last
        assert "0 of 2 runs are done: the same command goes on with run 1 of 2" in last
        state = newest(lab)
        assert (state["state"], runs_of(state)) == ("stopped", [None, None])
        assert "Prometheus" in state["reason"]
    finally:
        assert lab("up").returncode == 0
    # A run that was spoiled is repeated at once.
    process = lab.start(*command)
    until(process, "^run 20")
    supervisor(lab, "restart", "target")
    _, said = process.communicate(timeout=90)
    assert process.returncode == 0, said
    assert "the target died or was restarted during the run): once more" in said
    state = newest(lab)
    assert state["state"] == "finished"
    assert [len(cell["attempts"]) for cell in state["cells"]] == [2, 0]


@pytest.fixture
def small_disk(lab: Lab) -> Iterator[Path]:
    """This lab's results on a file system of their own, of 2 MB."""
    results = lab.home / "results"
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(results)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here: only root can")
    yield results
    subprocess.run(["umount", str(results)], check=True)


def test_a_full_disk_stops_a_sweep_which_goes_on_later(
    lab: Lab, plan: Path, small_disk: Path
) -> None:
    command = ["sweep", str(plan), "--values", "rate=20,30", "--order", "blocks"]
    process = lab.start(*command)
    said = until(process, "run 2 of 2")
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(bytes(10_000))
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 1, said + rest
    assert rest.splitlines()[-1] == (
        f"lab: the disk of {small_disk} is full: make room; 1 of 2 runs are done: "
        "the same command goes on with run 2 of 2"
    )
    filler.unlink()
    state = newest(lab)
    finished = lab(*command)
    assert finished.returncode == 0, finished.stderr
    assert runs_of(newest(lab))[:1] == runs_of(state)[:1] != [None]
    assert (newest(lab)["seed"], newest(lab)["state"]) == (state["seed"], "finished")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to sweep: add --values"),
        (["--values", "rat=1,2"], "(did you mean 'rate'?)"),
        (["--values", "rate=5,5000"], "--values rate=5000: must be at most 1,000"),
        (["--values", "rate=5,x"], "--values rate=x: must be a whole number"),
    ],
)
def test_bad_input_is_one_line_and_starts_nothing(
    lab: Lab, plan: Path, arguments: list[str], message: str
) -> None:
    result = lab("sweep", str(plan), *arguments)
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1), result.stderr
    assert message in result.stderr
