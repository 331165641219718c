"""One at a time: runs, which would measure each other, and changes of shared files.

The kernel lets go of a lock with the process that holds it: a killed run leaves nothing behind.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

from spikelab import paths
from spikelab.console import say
from spikelab.errors import LabError

_LOCK = paths.STATE / "run.lock"
_TRIES = 10


@contextmanager
def only_run() -> Iterator[Callable[[str], None]]:
    """Holds the run lock; gives a function that names the run. Raises LabError naming another's."""
    with _run_lock() as lock:
        # Tries for a moment: a command that only looks holds the lock for an instant as well.
        for _ in range(_TRIES):
            if _taken(lock):
                break
            time.sleep(0.05)
        else:
            raise LabError(
                f"another run is going: {_holder()}: wait for it, or stop it with Ctrl-C"
            )
        try:
            yield lambda testid: _write(lock, f"{testid} (pid {os.getpid()})")
        finally:
            _write(lock, "")


@contextmanager
def no_run() -> Iterator[bool]:
    """Whether no run is going; while the block lasts none can begin."""
    with _run_lock() as lock:
        yield _taken(lock)


def active_run() -> str | None:
    """The run that is going now, as `testid (pid N)`."""
    if not _LOCK.exists():
        return None
    with no_run() as idle:
        return None if idle else _holder()


@contextmanager
def alone(lock_file: Path, who: str) -> Iterator[None]:
    """Holds a lock file; waits for whoever holds it, and says who that is."""
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    with lock_file.open("w") as lock:
        if not _taken(lock):
            say(f"{who}: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def changing_the_stack() -> AbstractContextManager[None]:
    """Of two commands that start or stop components, the second waits for the first."""
    return alone(paths.STATE / "stack.lock", "another ./lab command is changing the stack")


def _run_lock() -> IO[str]:
    _LOCK.parent.mkdir(parents=True, exist_ok=True)
    return _LOCK.open("a+")


def _taken(lock: IO[str]) -> bool:
    """Takes the lock for as long as the file is open, if nobody else has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(lock: IO[str], text: str) -> None:
    lock.truncate(0)
    lock.write(text)
    lock.flush()


def _holder() -> str:
    return _LOCK.read_text().strip() or "one that is about to begin"
