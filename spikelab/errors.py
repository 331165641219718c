"""Errors that a user sees: one line each, with the exit code of the CLI's contract."""

import signal
from collections.abc import Iterable
from difflib import get_close_matches
from typing import NoReturn

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INCONCLUSIVE = 3
EXIT_SLO_MISSED = 99
EXIT_INTERRUPTED = 130

# Ctrl-C, a stop from outside, a closed terminal: all end the lab in order.
END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def stop_on_end_signals() -> None:
    """From here on each of them raises KeyboardInterrupt, as Ctrl-C does."""
    for number in END_SIGNALS:
        signal.signal(number, _interrupt)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


class LabError(Exception):
    """The stack, the driver or a run failed. The text is one line: what, where, the cure."""

    exit_code = EXIT_FAILED


class UsageError(LabError):
    """Wrong usage, plan or setting: nothing was started and nothing was lost."""

    exit_code = EXIT_USAGE


class RunInterruptedError(LabError):
    """The user stopped it (Ctrl-C or a termination signal)."""

    exit_code = EXIT_INTERRUPTED


def printable(text: str) -> str:
    """What a file holds, as a part of one line: a terminal does not obey it.

    >>> printable("a\\nb")
    'a\\\\nb'
    """
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`" (did you mean 'x'?)"` when a known word is near, else what is known.

    >>> did_you_mean("phasess", ["phases", "slo"])
    " (did you mean 'phases'?)"
    >>> did_you_mean("zzz", ["phases", "slo"])
    ' (known: phases, slo)'
    """
    names = list(known)
    near = get_close_matches(word, names, n=1)
    if not near:
        folded = {name.lower(): name for name in names}
        near = [folded[match] for match in get_close_matches(word.lower(), folded, n=1)]
    return f" (did you mean '{near[0]}'?)" if near else f" (known: {', '.join(names)})"
