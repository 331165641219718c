"""The README's first command."""

import json

import pytest

from tests.support.lab import Lab


@pytest.mark.timed
def test_the_demo_shows_both_runs_side_by_side(lab: Lab) -> None:
    file = lab.home / "demo.json"
    result = lab("demo", "--json", str(file))
    assert result.returncode == 0, result.stderr
    runs = json.loads(file.read_text())["runs"]
    threads = [run["target"]["effective"]["TOMCAT_MAX_THREADS"] for run in runs]
    assert threads == [200, 500]
    assert len({run["experiment"] for run in runs}) == 1
    waves = [[wave["answers"] for wave in run["steps"][0]["waves"]] for run in runs]
    assert waves == [[200] * 5, [500] * 2]
    assert "threads-200" in result.stdout
    assert "threads-500" in result.stdout
