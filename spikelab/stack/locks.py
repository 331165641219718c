"""One at a time: runs, which would measure each other, and changes of shared files."""

# - A driver's bearer token as a file: what a container has in its environment, whoever may
#   speak to the engine can read.
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO

from spikelab import paths
from spikelab.console import say
from spikelab.errors import LabError

_LOCK = paths.STATE / "run.lock"
_TRIES = 10


@contextmanager
def only_run() -> Iterator[Callable[[str], None]]:
    """Holds the run lock; gives a function that names the run. Raises LabError naming another's.

    The kernel lets go of it with the process, so a killed run leaves nothing behind.
    """
    paths.STATE.mkdir(parents=True, exist_ok=True)
    with _LOCK.open("a+") as lock:
        if not _taken(lock):
            raise LabError(
                f"another run is going: {_holder()}: wait for it, or stop it with Ctrl-C"
            )
        try:
            yield lambda testid: _write(lock, f"{testid} (pid {os.getpid()})")
        finally:
            _write(lock, "")


def _taken(lock: IO[str]) -> bool:
    """Tries for a moment: a command that only looks holds the lock for an instant as well."""
    for _ in range(_TRIES):
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(0.05)
    return False


def _write(lock: IO[str], text: str) -> None:
    lock.truncate(0)
    lock.write(text)
    lock.flush()


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


def changing_the_stack() -> AbstractContextManager[None]:
    """Of two commands that start or stop components, the second waits for the first."""
    return alone(paths.STATE / "stack.lock", "another ./lab command is changing the stack")


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


@contextmanager
def no_run() -> Iterator[bool]:
    """Whether no run is going; while the block lasts none can begin."""
    paths.STATE.mkdir(parents=True, exist_ok=True)
    with _LOCK.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _holder() -> str:
    return _LOCK.read_text().strip() or "one that is about to begin"


_FILE = paths.STATE / "token"


def token_file() -> dict[str, str]:
    """The variable that names the user's token, of TOKEN or TOKEN_FILE; none where there is none.
    The file is its owner's, who is the driver's user too."""
    _FILE.unlink(missing_ok=True)
    if token := os.environ.get("TOKEN"):
        _FILE.touch(mode=0o600)
        _FILE.write_text(token)
        return {"TOKEN_FILE": str(_FILE)}
    return named_token_file()


def named_token_file() -> dict[str, str]:
    """TOKEN_FILE against the working directory: Compose would look for it beside its own file, k6
    beside its script."""
    named = os.environ.get("TOKEN_FILE")
    return {"TOKEN_FILE": str(Path(named).resolve())} if named else {}
