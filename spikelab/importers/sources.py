"""The files to import, and what their names say: `<variant>-<rate>-run<n>`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spikelab import paths
from spikelab.console import warn
from spikelab.errors import UsageError
from spikelab.importers.formats import Format

NAMING = "<variant>-<rate>-run<n>"
# The variant is shown in tables and is a tag in InfluxDB: no brackets, no control characters.
_NAME = re.compile(
    r"(?P<variant>[\w .,+=@%-]*\w[\w .,+=@%-]*)-(?P<rate>[0-9]{1,9}(?:\.[0-9]{1,6})?)"
    r"-run(?P<repeat>[0-9]{1,6})"
)
_LARGEST_BYTES = 64 * 2**20
_MOST_NAMED = 5


@dataclass(frozen=True)
class Source:
    """A file with one report. `offered_rate` (requests/s) and `variant` are None where its name
    does not say. `group`: the name of what its run is one of, for `plan`."""

    path: Path
    group: str
    variant: str | None = None
    offered_rate: float | None = None
    repeat: int = 1

    @property
    def name(self) -> str:
        # A name that is no UTF-8 can be opened, but not written.
        return self.path.name.encode(errors="replace").decode()

    def read(self) -> str:
        """Its text. Raises UsageError."""
        name = paths.shown(self.path)
        try:
            if self.path.stat().st_size > _LARGEST_BYTES:
                raise UsageError(f"{name}: this is too large for a report")
            return self.path.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise UsageError(f"{name}: cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise UsageError(f"{name}: this is no text in UTF-8") from error


def find(path: Path, format_: Format) -> list[Source]:
    """The file, or the named files in the folder, in the order of variant, rate and repeat.

    Raises UsageError when there is none, or two of one run. Other files are named in a warning.
    """
    if path.is_file():
        return [_source(path, format_)]
    if not path.is_dir():
        raise UsageError(f"{path}: there is no such file or folder")
    found: dict[tuple[str | None, float | None, int], Source] = {}
    unknown = []
    for each in _by_ending(path, format_):
        source = _source(each, format_)
        if source.variant is None:
            unknown.append(each.name)
            continue
        cell = (source.variant, source.offered_rate, source.repeat)
        other = found.setdefault(cell, source)
        if other is not source and _stem(other.path, format_) != _stem(each, format_):
            raise UsageError(
                f"{paths.shown(path)}: {other.name} and {source.name} are the same run: "
                "rename one or take it away"
            )
    unknown += _strangers(path, format_)
    if unknown:
        _warn_of(path, sorted(unknown))
    if not found:
        raise UsageError(
            f"{paths.shown(path)}: there is no file named {NAMING}{format_.endings[-1]} in it"
        )
    return sorted(
        found.values(), key=lambda each: (each.variant or "", each.offered_rate or 0, each.repeat)
    )


def _by_ending(folder: Path, format_: Format) -> list[Path]:
    """The format's files, those with the best ending first: `setdefault` keeps these."""
    files = [each for each in sorted(folder.iterdir()) if each.is_file()]
    return [
        each for ending in format_.endings for each in files if each.name.lower().endswith(ending)
    ]


def _strangers(folder: Path, format_: Format) -> list[str]:
    known = (*format_.endings, *format_.companions)
    return [
        each.name
        for each in folder.iterdir()
        if not each.name.startswith(".")
        and (each.is_dir() or not each.name.lower().endswith(known))
    ]


def _warn_of(folder: Path, names: Sequence[str]) -> None:
    more = len(names) - _MOST_NAMED
    warn(
        f"{paths.shown(folder)}: left out, as they are not named {NAMING}: "
        f"{', '.join(names[:_MOST_NAMED])}{f' and {more} more' if more > 0 else ''}"
    )


def _stem(path: Path, format_: Format) -> str:
    """The name without the format's ending."""
    lower = path.name.lower()
    ending = next((each for each in format_.endings if lower.endswith(each)), path.suffix)
    return path.name[: len(path.name) - len(ending)]


def _source(path: Path, format_: Format) -> Source:
    match = _NAME.fullmatch(_stem(path, format_))
    if not match or not float(match["rate"]):
        return Source(path, _slug(_stem(path, format_)) or format_.name)
    return Source(
        path=path,
        group=_slug(path.resolve().parent.name) or format_.name,
        variant=match["variant"],
        offered_rate=float(match["rate"]),
        repeat=int(match["repeat"]),
    )


def _slug(name: str) -> str:
    """A name as plans have them."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60]
