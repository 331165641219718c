"""How the processes of a phase share the tests."""

from pathlib import PurePosixPath

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

# Each process that takes a file of this folder starts a stack for it, but for the faults, which
# have stacks of their own.
_ONE_STACK = PurePosixPath("tests/compose")
_OWN_STACKS = "test_faults_"


class _ByStack(LoadFileScheduling):  # type: ignore[misc]  # untyped
    """A file at a time; all files that share a stack of containers go to one process."""

    def _split_scope(self, nodeid: str) -> str:
        file = PurePosixPath(super()._split_scope(nodeid))
        shared = file.parent == _ONE_STACK and not file.name.startswith(_OWN_STACKS)
        return str(file.parent if shared else file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """In place of `--dist loadfile`."""
    return _ByStack(config, log) if config.getvalue("dist") == "loadfile" else None
