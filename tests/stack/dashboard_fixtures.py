"""Fixtures: a lab of the dashboards' own, empty at first, then with runs of every kind.

A plugin of the test modules that use it, so that all of them share one lab.
"""

from collections.abc import Iterator

import pytest

from tests.stack.dashboard_runs import Shown, run_everything
from tests.support.lab import Lab, make_lab


@pytest.fixture(scope="session")
def empty_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab that is up and has run nothing."""
    lab = make_lab(tmp_path_factory.mktemp("dashboards"))
    up = lab("up", "--with", "redis")
    assert up.returncode == 0, up.stderr
    yield lab
    assert lab("down").returncode == 0


@pytest.fixture(scope="session")
def shown(empty_lab: Lab) -> Shown:
    """After a k6 run, a Locust run, a spike with raw samples and checks of authorization."""
    return run_everything(empty_lab)
