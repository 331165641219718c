"""The command report: what was measured, as a file to send, to keep or to read in CI."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from spikelab import paths
from spikelab.cli.app import command
from spikelab.console import out, warn
from spikelab.errors import UsageError, did_you_mean

_ALL = "all"


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
        Path | None, typer.Option("--out", metavar="PATH", help="a file, a folder, or - to print")
    ] = None,
) -> None:
    """Write the report of a run, a sweep, a search or a comparison; without ID of the newest."""
    from spikelab.report import FORMATS, rendered, write_whole  # noqa: PLC0415
    from spikelab.report.subject import find  # noqa: PLC0415

    if format_name not in (*FORMATS, _ALL):
        raise UsageError(
            f"--format {format_name}: unknown{did_you_mean(format_name, [*FORMATS, _ALL])}"
        )
    formats = list(FORMATS) if format_name == _ALL else [format_name]
    if str(to) == "-" and len(formats) > 1:
        raise UsageError("--out -: prints one format: name it with --format")
    subject = find(name)
    if "csv" in formats and subject.spoiled:
        warn(f"the CSV leaves out {len(subject.spoiled)} runs that are no result")
    for each in formats:
        text = rendered(subject, each)
        if str(to) == "-":
            sys.stdout.write(text)
            continue
        path = _place(to, subject.folder, FORMATS[each], several=len(formats) > 1)
        write_whole(path, text)
        out.print(paths.shown(path), markup=False)


def _place(to: Path | None, folder: Path, file: str, several: bool) -> Path:
    """Where a format is written. Raises UsageError where that cannot be."""
    if to is None:
        return folder / file
    if several:
        if to.exists() and not to.is_dir():
            raise UsageError(f"--out {to}: --format all writes several files: name a folder")
        to.mkdir(parents=True, exist_ok=True)
    path = to / file if to.is_dir() else to
    if not path.resolve().parent.is_dir():
        raise UsageError(f"--out {to}: there is no folder {path.resolve().parent}")
    return path
