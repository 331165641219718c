"""Files under results/, a folder for each run, experiment and comparison: how they are read and
written.

They may come from another machine, or be damaged: a value that no figure, table or page can show is
refused where the file is read.
"""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from spikelab import paths

# Below 2^53, so that it is exact as a float too.
Count = Annotated[int, Field(ge=0, le=10**15)]
# Wider than the times of reports that are taken, from which others are reckoned.
Moment = Annotated[
    AwareDatetime, Field(ge=datetime(1900, 1, 1, tzinfo=UTC), le=datetime(2300, 1, 1, tzinfo=UTC))
]


class Part(BaseModel):
    """A part of such a file: no unknown key, and no number that JSON does not have."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, allow_inf_nan=False)


class ResultFile(Part):
    """The whole of results/<name>/<FILE>; `NAME`: the field that has the folder's name."""

    FILE: ClassVar[str]
    NAME: ClassVar[str]
    INDENT: ClassVar[int | None] = 2

    @property
    def folder(self) -> Path:
        return paths.RESULTS / str(getattr(self, self.NAME))

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True)

    def save(self) -> Path:
        """Writes the file whole or not at all; returns its path."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / self.FILE
        write_json(path, self.to_json(), indent=self.INDENT)
        return path

    @classmethod
    def read(cls, name: str) -> Self | None:
        """By the name of its folder; None where there is none that can be read."""
        # A name that leads elsewhere is none of a folder under results/.
        plain = name not in ("", ".", "..") and Path(name).name == name
        return cls.read_in(paths.RESULTS / name) if plain else None

    @classmethod
    def read_in(cls, folder: Path) -> Self | None:
        """The file in that folder; None where there is none that can be read."""
        try:
            found = cls.model_validate_json((folder / cls.FILE).read_bytes())
        except (ValueError, OSError):
            # A ValueError that is none of the model's: no file can have this name.
            return None
        # It writes to the folder that it names: that must be its own.
        return found if getattr(found, cls.NAME) == folder.name else None

    @classmethod
    def read_all(cls) -> Iterator[Self]:
        """The readable ones under results/, newest first (a name sorts by its time)."""
        for path in sorted(paths.RESULTS.glob(f"*/{cls.FILE}"), reverse=True):
            if (found := cls.read(path.parent.name)) is not None:
                yield found


def write_json(path: Path, data: object, mode: int = 0o644, indent: int | None = 2) -> None:
    """Writes a JSON file whole or not at all."""
    write_whole(path, json_text(data, indent), mode)


def json_text(data: object, indent: int | None = 2) -> str:
    """As the lab's JSON files have it."""
    return json.dumps(data, indent=indent, ensure_ascii=False) + "\n"


def write_whole(path: Path, text: str, mode: int = 0o644) -> None:
    """Writes a file by way of a temporary one, so that no reader sees half of it.

    A symlink stays one: what it points to is written. What is no regular file (a device, a pipe)
    is written to as it is. Raises OSError.
    """
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    real = path.resolve()
    temporary = real.with_name(f".{real.name}.{os.getpid()}")
    try:
        temporary.touch(mode)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(real)
    finally:
        temporary.unlink(missing_ok=True)
