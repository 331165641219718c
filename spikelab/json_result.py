"""`--json FILE`: the result for a program to read, in a file, or printed where FILE is `-`."""

import os
import sys
from pathlib import Path

from spikelab import console
from spikelab.errors import UsageError
from spikelab.record import json_text, write_json

_PRINTED = Path("-")


def prepare(json_file: Path | None) -> None:
    """Before anything starts: the result can be written there. Raises UsageError.

    Where it is to be printed, standard output is left to it alone.
    """
    if json_file is None:
        return
    if json_file == _PRINTED:
        console.answer_on_stderr()
        return
    folder = json_file.resolve().parent
    if not json_file.name or json_file.is_dir():
        raise UsageError(f"--json {json_file}: this is a folder, not a file")
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(f"--json {json_file}: there is no folder {folder} that can be written to")


def write_result(json_file: Path, result: object) -> None:
    """Raises OSError."""
    if json_file == _PRINTED:
        sys.stdout.write(json_text(result))
        sys.stdout.flush()
    else:
        write_json(json_file, result)


def write_or_warn(json_file: Path, result: object) -> None:
    """Of a run: that it cannot be written does not change what was measured."""
    try:
        write_result(json_file, result)
    except OSError as error:
        console.warn(f"--json {json_file}: {error.strerror}")
