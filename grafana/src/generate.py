"""Writes the dashboards: `python -m grafana.src.generate [--check]`.

Reads nothing and writes `grafana/dashboards/<uid>.json`, the same bytes every time. `--check`
writes nothing and exits with 1 when a file differs from what would be written.
"""

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from grafana.src import dashboards

DIRECTORY = Path(__file__).resolve().parent.parent / "dashboards"


def rendered(board: Dashboard) -> str:
    """The file's text; panels are numbered in the order they are shown."""
    for number, panel in enumerate(board.panels or [], start=1):
        panel.id_val = number
    return json.dumps(board, cls=JSONEncoder, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def files() -> dict[Path, str]:
    """Each dashboard's path and text."""
    names = sorted(module.name for module in iter_modules(dashboards.__path__))
    modules = [import_module(f"{dashboards.__name__}.{name}") for name in names]
    boards = [module.build().build() for module in modules]
    return {DIRECTORY / f"{board.uid}.json": rendered(board) for board in boards}


def main() -> int:
    """Writes or checks; returns the exit code."""
    parser = argparse.ArgumentParser(description="Writes grafana/dashboards/ from grafana/src/.")
    parser.add_argument("--check", action="store_true", help="only report what would change")
    check = parser.parse_args().check
    wanted = files()
    present = {path: path.read_text(encoding="utf-8") for path in DIRECTORY.glob("*.json")}
    changed = sorted(path for path in {*wanted, *present} if wanted.get(path) != present.get(path))
    for path in changed:
        if check:
            print(f"{path.name}: not as generated; run python -m grafana.src.generate")
        elif path in wanted:
            path.write_text(wanted[path], encoding="utf-8")
        else:
            path.unlink()
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
