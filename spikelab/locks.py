"""One at a time: runs, which would measure each other, and changes of shared files."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spikelab import paths
from spikelab.console import say
from spikelab.errors import LabError

_LOCK = paths.STATE / "run.lock"


@contextmanager
def only_run(testid: str) -> Iterator[None]:
    """Holds the run lock. Raises LabError naming the run that holds it.

    The kernel lets go of it with the process, so a killed run leaves nothing behind.
    """
    paths.STATE.mkdir(parents=True, exist_ok=True)
    with _LOCK.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LabError(
                f"another run is going: {_holder()}: wait for it, or stop it with Ctrl-C"
            ) from error
        lock.truncate(0)
        lock.write(f"{testid} (pid {os.getpid()})")
        lock.flush()
        yield
        lock.truncate(0)


@contextmanager
def alone(lock_file: Path, who: str) -> Iterator[None]:
    """Holds a lock file; waits for whoever holds it, and says who that is."""
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    with lock_file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{who}: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def going_run() -> str | None:
    """The run that is going now, as `testid (pid N)`."""
    if not _LOCK.exists():
        return None
    with _LOCK.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return _holder()
    return None


def _holder() -> str:
    return _LOCK.read_text().strip()
