"""Finding a Grafana on this machine: the lab brings none for the host runtime."""

import os
import shutil
from pathlib import Path

_DISTRIBUTION_HOME = Path("/usr/share/grafana")
ADVICE = (
    "no Grafana found: unpack one and set GRAFANA_HOME to its folder, or use the docker runtime; "
    "everything else runs, and ./lab run --live shows k6's own dashboard"
)


def find_grafana() -> Path | None:
    """The home folder (with bin/, conf/, public/) from GRAFANA_HOME or of a grafana on PATH."""
    named = os.environ.get("GRAFANA_HOME")
    if named:
        return Path(named) if (Path(named) / "public").is_dir() else None
    for program in ("grafana", "grafana-server"):
        found = shutil.which(program)
        if found:
            for home in (Path(found).resolve().parent.parent, _DISTRIBUTION_HOME):
                if (home / "public").is_dir() and (home / "bin").is_dir():
                    return home
    return None
