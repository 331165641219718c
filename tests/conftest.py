"""How the processes of a phase share the tests, and the compilers of the JVMs that they start."""

from pathlib import PurePosixPath

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests.support.lab import java_in_containers, java_options

# Each process that takes a file of this folder starts a stack for it, but for the faults, which
# have stacks of their own.
_ONE_STACK = PurePosixPath("tests/compose")
_OWN_STACKS = "test_faults_"

# For tests that share the machine with others: without its second compiler the JVM starts with half
# of the CPU. Where a test of the session has one of these marks, all have the JVM that users have.
_ONE_COMPILER = "-XX:TieredStopAtLevel=1"
_CLOSE_MARKS = ("timed", "alone")


class _ByStack(LoadFileScheduling):  # type: ignore[misc]  # untyped
    """A file at a time; all files that share a stack of containers go to one process."""

    def _split_scope(self, nodeid: str) -> str:
        file = PurePosixPath(super()._split_scope(nodeid))
        shared = file.parent == _ONE_STACK and not file.name.startswith(_OWN_STACKS)
        return str(file.parent if shared else file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """In place of `--dist loadfile`."""
    return _ByStack(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Of `./lab test` each phase is a session; one that a developer chose may be mixed."""
    marks = {mark.name for item in session.items for mark in item.iter_markers()}
    if marks.isdisjoint(_CLOSE_MARKS):
        java_options["TARGET_JAVA_OPTIONS"] = _ONE_COMPILER
        java_in_containers["JDK_JAVA_OPTIONS"] = _ONE_COMPILER
