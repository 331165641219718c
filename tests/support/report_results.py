"""A results folder with everything that a report can be about: tests/data/report, and the published
sweep imported."""

import shutil
from pathlib import Path

import pytest

from spikelab import paths
from spikelab.cli import imports

DATA = paths.ROOT / "tests" / "data"
SPIKE = "20261121T122319Z-tomcat-spike-824f"
STEPS = "20261121T122424Z-three-steps-d7b4"
POOLS = "20261121T122525Z-two-pools-3b6a"
GRID = "20261121T120151Z-tomcat-grid-e687"
CAPACITY = "20261121T122553Z-capacity-42ab"
COMPARISON = "20261121T120753Z-compare-3012"
SWEEP = "vegeta-sweep-363dc9094208"
ALL = (SPIKE, STEPS, POOLS, GRID, CAPACITY, COMPARISON, SWEEP)


def fill(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """Makes it and has the lab use it; returns it."""
    shutil.copytree(DATA / "report", folder, dirs_exist_ok=True)
    monkeypatch.setattr(paths, "RESULTS", folder)
    imports.run("vegeta", DATA / "vegeta_sweep", ["success>=0.999", "p95<1s"], None)
    return folder
