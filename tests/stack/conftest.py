"""The lab that the tests of this folder share, up from the first of them to the last."""

import os
import signal
from collections.abc import Iterator

import pytest

from tests.support.lab import Lab, make_lab


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab that is up; it is taken down after the last test, and nothing may be left of it."""
    instance = make_lab(tmp_path_factory.mktemp("lab"))
    result = instance("up")
    assert result.returncode == 0, result.stderr
    yield instance
    down = instance("down")
    assert down.returncode == 0, down.stderr
    left = instance.processes()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []
