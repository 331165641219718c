"""What the lab prints. Answers go to standard output, progress and errors to standard error."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from threading import Event, Thread
from time import monotonic

from rich.console import Console

# Wide enough that nothing is wrapped or cut where the output goes to a file or a pipe.
_PLAIN_WIDTH = 200


for stream in (sys.stdout, sys.stderr):
    if isinstance(stream, TextIOWrapper):
        # A terminal without UTF-8 shows a substitute for µ and ∞ instead of failing.
        stream.reconfigure(errors="replace")


out = Console(
    markup=False,
    soft_wrap=True,
    highlight=False,
    width=None if sys.stdout.isatty() else _PLAIN_WIDTH,
)
err = Console(markup=False, stderr=True, soft_wrap=True, highlight=False)

_HEARTBEAT_SECONDS = 15


def answer_on_stderr() -> None:
    """Leaves standard output to what a program reads."""
    out.stderr = True
    if err.is_terminal:
        out.width = err.width


def say(text: str) -> None:
    """A line of progress."""
    err.print(text)


def warn(text: str) -> None:
    err.print(f"warning: {text}", style="yellow")


@contextmanager
def working(text: str) -> Iterator[None]:
    """Shows that something takes a while: a spinner, or plain lines where there is no terminal."""
    start = monotonic()
    if err.is_terminal:
        with err.status(text):
            yield
    else:
        say(f"{text} …")
        done = Event()
        beat = Thread(target=_heartbeat, args=(text, start, done), daemon=True)
        beat.start()
        try:
            yield
        finally:
            done.set()
            beat.join()
    say(f"{text}: done in {monotonic() - start:.0f} s")


def _heartbeat(text: str, start: float, done: Event) -> None:
    while not done.wait(_HEARTBEAT_SECONDS):
        say(f"{text} … {monotonic() - start:.0f} s")
