"""A results folder of each test's own."""

from pathlib import Path

import pytest

from spikelab import paths


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "results"
    folder.mkdir()
    monkeypatch.setattr(paths, "RESULTS", folder)
    return folder
