"""Reports of real runs, and the workflow that users copy, as far as a shell can run it."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from spikelab import paths
from tests.support.lab import Lab, make_lab

WORKFLOW = paths.ROOT / "examples" / "github-actions" / "load-test.yml"
# 30 requests/s of 1 s, which cannot be answered within 500 ms. A busy driver may be 50 ms late.
PLAN = """
name: short
about: Misses its objective
script: steady
request: {path: "/hello?ms=700", timeout: 3s}
phases:
  - {name: steady, kind: rate, value: 30, duration: 3s}
slo: [success >= 90%, p95 < 500ms]
"""


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab that only the workflow's steps start and stop."""
    instance = make_lab(tmp_path_factory.mktemp("light")).with_settings(LAB_REPORT="")
    yield instance
    instance("down")


def workflow() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text())
    return found


def job() -> dict[str, Any]:
    (only,) = workflow()["jobs"].values()
    found: dict[str, Any] = only
    return found


def test_the_workflow_may_only_read_and_all_its_actions_are_pinned_and_bounded() -> None:
    assert workflow()["permissions"] == {"contents": "read"}
    assert job()["timeout-minutes"] <= 30
    for step in job()["steps"]:
        if "uses" in step:
            assert len(step["uses"].partition("@")[2]) == 40
        # What a person may type is never part of a script.
        assert "${{" not in step.get("run", "")


def test_the_workflow_s_steps_run_in_a_shell_and_report_a_missed_objective(
    light: Lab, tmp_path: Path
) -> None:
    plan, report, summary = (tmp_path / name for name in ("short.yaml", "report", "summary.md"))
    plan.write_text(PLAN)
    assert set(workflow()["env"]) == {"PLAN", "REPORT"}
    env = {
        **light.env,
        "PLAN": str(plan),
        "REPORT": str(report),
        "GITHUB_SHA": "0a1b2c",
        "GITHUB_REF_NAME": "main",
        "GITHUB_STEP_SUMMARY": str(summary),
    }
    codes, said = {}, ""
    for step in job()["steps"]:
        if "run" not in step:
            continue
        goes_on = "if" in step
        assert goes_on or not any(codes.values()), "nothing after a failure but what says so"
        done = subprocess.run(
            ["bash", "-e", "-c", step["run"]],
            cwd=paths.ROOT,
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        codes[step["name"]] = done.returncode
        said += done.stdout + done.stderr
    assert codes == {"Start the lab": 0, "Run the plan": 99, "Report": 0, "Stop the lab": 0}, said
    assert {path.name for path in report.iterdir()} == {
        "report.html",
        "report.md",
        "report.csv",
        "report.xml",
    }
    assert "**✗ Failed.**" in summary.read_text()
    assert "p95 &lt; 500ms" in summary.read_text()
    suite = ElementTree.parse(report / "report.xml").getroot()[0]
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")
    assert ",0a1b2c,main,fail," in (report / "report.csv").read_text()
    # The run itself had written one, drawn over time without InfluxDB.
    (folder,) = (light.home / "results").iterdir()
    assert f"report     {folder / 'report.html'}" in said
    page = (folder / "report.html").read_text()
    assert "Latency over time" in page
    assert "Queues over time" in page
    series = json.loads((folder / "series.json").read_text())
    assert sum(series["points"]["good_rate"]) == pytest.approx(90, abs=2)
    assert max(filter(None, series["points"]["connections_established"])) > 0
