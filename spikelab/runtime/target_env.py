"""The host target's environment: a file that host/start-target reads at each start."""

import shlex
from collections.abc import Mapping

from spikelab import paths

_FILE = paths.STATE / "target.env"


def write_target_env(values: Mapping[str, object]) -> None:
    """Writes it anew."""
    lines = [f"{name}={shlex.quote(str(value))}" for name, value in values.items()]
    _FILE.write_text("\n".join(lines) + "\n")


def change_target_env(name: str, value: str) -> bool:
    """Sets one variable and leaves the others; whether that changed anything."""
    before = _FILE.read_text().splitlines()
    others = [line for line in before if not line.startswith(f"{name}=")]
    after = [*others, f"{name}={shlex.quote(value)}"]
    _FILE.write_text("\n".join(after) + "\n")
    return sorted(before) != sorted(after)
