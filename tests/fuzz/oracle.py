"""What every case is held to: a figure or one clear line, and nothing else on the disk."""

import os
import shutil
import signal
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

from spikelab import console, paths
from spikelab.errors import LabError

# Whether the input was taken. Any exception is a finding.
Check = Callable[[bytes], bool]

# Memory, where there is a file system in it: a million cases wear out a disk for nothing.
_MEMORY = Path("/dev/shm")


def memory() -> Path | None:
    """Where files that nobody keeps are written; None: where TMPDIR says."""
    return None if "TMPDIR" in os.environ or not os.access(_MEMORY, os.W_OK) else _MEMORY


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder that is the lab's results for the time being, and its console without a screen."""
    folder = Path(tempfile.mkdtemp(prefix="spikelab-fuzz-", dir=memory()))
    before: list[tuple[Any, str, Any]] = [
        (paths, "RESULTS", paths.RESULTS),
        # None: the standard stream of the moment, as in a new console.
        (console.out, "file", None),
        (console.err, "file", None),
    ]
    paths.RESULTS = folder
    console.out.file = console.err.file = StringIO()
    try:
        yield folder
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)
        shutil.rmtree(folder)


@contextmanager
def no_hang(check: Check) -> Iterator[Check]:
    """The same, with an error where a case does not end."""

    def limited(data: bytes) -> bool:
        signal.setitimer(signal.ITIMER_VIRTUAL, _HANG_CPU_SECONDS)
        try:
            return check(data)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    before = signal.signal(signal.SIGVTALRM, _hangs)
    try:
        yield limited
    finally:
        signal.signal(signal.SIGVTALRM, before)


def _hangs(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"no answer within {_HANG_CPU_SECONDS} s")


def printed() -> str:
    """What was printed since the last time."""
    file = console.out.file
    assert isinstance(file, StringIO)
    text = file.getvalue()
    file.seek(0)
    file.truncate()
    return text


# Of CPU time: others may use the machine, and a run may be stopped for a while.
_HANG_CPU_SECONDS = 20
# On these everything is tried but what takes a second.
_FEW = 64
thorough = False


def sampled(data: bytes, one_in: int) -> bool:
    """Whether an input is one of those on which what is slow is tried too."""
    return (thorough and one_in <= _FEW) or zlib.crc32(data) % one_in == 0


def clear(error: LabError, where: str) -> None:
    """A line that a terminal can show, and that says where."""
    text = str(error)
    assert text.isprintable(), f"not one line: {text!r}"
    assert where in text, f"it does not say where: {text!r}"
    assert len(text) < 600, f"too long: {text!r}"


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by its name there."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
