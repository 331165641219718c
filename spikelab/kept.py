"""Files that the lab keeps under results/: what holds for all of them, and how one is read.

They may come from another machine, or be damaged: a value that no figure, table or page can show is
refused where the file is read.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

# Wider than the times of reports that are taken, from which others are reckoned.
Moment = Annotated[
    AwareDatetime, Field(ge=datetime(1900, 1, 1, tzinfo=UTC), le=datetime(2300, 1, 1, tzinfo=UTC))
]
# Below 2^53, so that it is exact as a float too.
Count = Annotated[int, Field(ge=0, le=10**15)]


class Kept(BaseModel):
    """A part of such a file: no unknown key, and no number that JSON does not have."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, allow_inf_nan=False)


K = TypeVar("K", bound=BaseModel)


def read_kept(model: type[K], folder: Path, file: str) -> K | None:
    """The file in that folder; None where there is none that can be read."""
    try:
        return model.model_validate_json((folder / file).read_bytes())
    except (ValueError, OSError):
        # A ValueError that is none of the model's: no file can have this name.
        return None


def plain(name: str) -> bool:
    """Whether it is the name of a folder under results/, and leads nowhere else."""
    return name not in ("", ".", "..") and Path(name).name == name
