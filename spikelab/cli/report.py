"""The command report: what was measured, as a file to send, to keep or to read in CI."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from spikelab import paths
from spikelab.cli.app import command
from spikelab.console import out, warn
from spikelab.errors import LabError, UsageError, did_you_mean
from spikelab.results.files import write_whole
from spikelab.results.lookup import Subject, find

_ALL = "all"
_PRINT = "-"


@command("report")
def report(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="a run or an experiment, or how only its name begins"),
    ] = None,
    format_name: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="html, md, csv, junit or all")
    ] = "html",
    to: Annotated[
        # As text: a path does not keep the / at its end.
        str | None, typer.Option("--out", metavar="PATH", help="a file, a folder, or - to print")
    ] = None,
) -> None:
    """Write the report of a run, a sweep, a search or a comparison; without ID of the newest."""
    from spikelab.report.formats import FORMATS  # noqa: PLC0415

    if format_name not in (*FORMATS, _ALL):
        raise UsageError(
            f"--format {format_name}: unknown{did_you_mean(format_name, [*FORMATS, _ALL])}"
        )
    formats = list(FORMATS) if format_name == _ALL else [format_name]
    if to == _PRINT and len(formats) > 1:
        raise UsageError("--out -: prints one format: name it with --format")
    subject = find(name)
    if "csv" in formats and subject.spoiled:
        warn(f"the CSV leaves out {len(subject.spoiled)} runs that are no result")
    places = {
        each: None if to == _PRINT else _place(to, subject.folder, FORMATS[each], len(formats) > 1)
        for each in formats
    }
    failed = [why for each, path in places.items() if (why := _write(subject, each, path))]
    if failed:
        raise LabError("; ".join(failed))


def _write(subject: Subject, format_name: str, path: Path | None) -> str | None:
    """Writes one format and says where, or prints it. Returns why that failed: the others are
    written all the same."""
    from spikelab.report.formats import rendered  # noqa: PLC0415

    try:
        text = rendered(subject, format_name)
        if path is None:
            sys.stdout.write(text)
        else:
            write_whole(path, text)
    except BrokenPipeError:
        raise
    except OSError as error:
        return f"no {format_name}: {paths.shown(path) if path else 'printed'}: {error.strerror}"
    except Exception as error:
        return f"no {format_name}: {type(error).__name__}: {' '.join(str(error).split())}"
    if path:
        out.print(paths.shown(path))
    return None


def _place(to: str | None, folder: Path, file: str, several: bool) -> Path:
    """Where a format is written. Raises UsageError where that cannot be."""
    if to is None:
        return folder / file
    asked = Path(to)
    if several or to.endswith("/"):
        if asked.exists() and not asked.is_dir():
            several_files = "--format all writes several files" if several else "this is a file"
            raise UsageError(f"--out {to}: {several_files}: name a folder")
        asked.mkdir(parents=True, exist_ok=True)
    path = asked / file if asked.is_dir() else asked
    if not path.exists() and not path.resolve().parent.is_dir():
        raise UsageError(f"--out {to}: there is no folder {path.resolve().parent}")
    return path
