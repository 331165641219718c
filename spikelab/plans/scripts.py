"""The drivers' scripts, and what each of them can run."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from spikelab import paths
from spikelab.errors import did_you_mean

DriverName = Literal["k6", "locust"]
# How users of a phase go on: `once` is a request each, `ramp` a rate that changes evenly.
Loop = Literal["open", "closed", "once", "ramp"]

_FOLDERS: dict[DriverName, tuple[Path, str]] = {
    "k6": (paths.K6, "js"),
    "locust": (paths.LOCUST, "py"),
}
# In the object that each script of k6/ gives to `prepare`.
_KINDS = re.compile(r"^ *kinds: \{([^}]*)\}", re.MULTILINE)
_KIND = re.compile(r"(\w+): '(open|closed|once|ramp)'")
_ONE_PHASE = re.compile(r"^ *one_phase: true", re.MULTILINE)


@dataclass(frozen=True)
class Script:
    """`kinds`: the kinds of phases that it runs, each with its loop."""

    kinds: Mapping[str, Loop]
    one_phase: bool = False


# Any script of locust/ runs what its library does.
_LOCUST = Script({"rate": "open", "users": "closed"})


def known_scripts(driver: DriverName) -> list[str]:
    folder, suffix = _FOLDERS[driver]
    return [path.stem for path in sorted(folder.glob(f"*.{suffix}"))]


def require_script(name: str, driver: DriverName) -> None:
    """Raises ValueError where the driver has no script of that name."""
    known = known_scripts(driver)
    if name not in known:
        folder, suffix = _FOLDERS[driver]
        raise ValueError(f"there is no {folder.name}/{name}.{suffix}" + did_you_mean(name, known))


@cache
def script_facts(name: str, driver: DriverName) -> Script:
    """What a script runs, read where the script itself says it."""
    if driver == "locust":
        return _LOCUST
    folder, suffix = _FOLDERS[driver]
    text = (folder / f"{name}.{suffix}").read_text(encoding="utf-8")
    kinds = _KINDS.search(text)
    found: dict[str, Loop] = dict(_KIND.findall(kinds[1])) if kinds else {}
    return Script(found, one_phase=_ONE_PHASE.search(text) is not None)
