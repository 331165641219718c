"""A name, a part of one or none finds what a report is about."""

import re
from pathlib import Path

import pytest

from spikelab import paths
from spikelab.errors import UsageError
from spikelab.results.lookup import find
from spikelab.results.run import RunRecord
from tests.support.report_results import (
    SPIKE,
    STEPS,
    fill,
)


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    return fill(monkeypatch, tmp_path / "results")


# Finding what it is about.


def test_the_newest_or_a_beginning_is_enough(results: Path) -> None:
    assert find(SPIKE[:20]).name == SPIKE
    assert find("vegeta-sw").kind == "sweep"
    record = RunRecord.read(STEPS)
    assert record
    record.save()
    assert find().name == STEPS


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("tomcat-spke", f"did you mean '{SPIKE}'"),
        ("2026", "names: write more of it ("),
        ("qqq", "newest: "),
        ("", "there is no run or experiment ''"),
        ("../..", "there is no run or experiment"),
    ],
)
def test_an_unknown_name_says_what_is_near(results: Path, name: str, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        find(name)


def test_without_results_it_says_how_to_get_some(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "none")
    with pytest.raises(UsageError, match="there are no results yet"):
        find()
