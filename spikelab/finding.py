"""What ./lab doctor finds."""

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "limits", "missing"]


@dataclass(frozen=True)
class Finding:
    """What was checked, what was found, and what that limits or how to cure it."""

    name: str
    state: State
    found: str
    limits: str = ""
