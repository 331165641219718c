"""Which tests share a process when several run at once: `./lab test` takes four processes."""

import pytest

_COMPOSE = "tests/compose/"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file's tests share their fixtures; those of an engine share one stack."""
    for item in items:
        file = item.nodeid.split("::")[0]
        item.add_marker(pytest.mark.xdist_group("compose" if file.startswith(_COMPOSE) else file))
