from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.http_server import Server
from tests.support.k6_scripts import K6Runs

# A busy machine may pause any example for longer than Hypothesis allows.
settings.register_profile("lab", deadline=None)
settings.load_profile("lab")


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    yield one
    one.close()


@pytest.fixture
def k6(tmp_path: Path) -> K6Runs:
    return K6Runs(tmp_path)
