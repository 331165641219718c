"""Pictures of the dashboards for docs/images/, taken while a run goes on.

Uses the lab that is up (with a Grafana), and needs a Chromium. `--theme light` for the other theme.
"""

import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.dashboard_browser import chromium
from grafana.lint.reading import Json, all_dashboards, panels
from spikelab import paths
from spikelab.results.run import RunRecord
from spikelab.stack import current

_FOLDER = paths.ROOT / "docs" / "images"
# A spike in waves, then a rate: both kinds of load are on every picture.
_BEFORE = (["blacklist", "--set", "duration=10s", "--set", "repeats=1"], ["tomcat-spike"])
_DURING = ["steady", "--set", "rate=300", "--set", "duration=10m", "--sink", "influxdb"]
_UNTIL_SEEN_SECONDS = 30
_COMPARED = 2


def main() -> int:
    """Returns the exit code: 1 where a panel shows an error."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("dashboards", nargs="*", help="their uids; all without one")
    parser.add_argument("--theme", choices=("dark", "light"), default="dark")
    parser.add_argument("--folder", type=Path, default=_FOLDER)
    parser.add_argument("--no-runs", action="store_true", help="show what is there already")
    asked = parser.parse_args()
    boards = all_dashboards()
    wanted = asked.dashboards or list(boards)
    grafana = current().endpoints().grafana
    if grafana is None:
        print("no Grafana is up: GRAFANA_HOME=… ./lab up", file=sys.stderr)
        return 1
    failed = 0
    with _runs(begin=not asked.no_runs), chromium(grafana) as browser:
        for uid in wanted:
            parameters = {"theme": asked.theme, **_time_and_runs(boards[uid])}
            titles = [panel["title"] for panel in panels(boards[uid])]
            browser.open(uid, parameters, titles)
            errors = browser.errors()
            file = asked.folder / f"{uid}.png"
            browser.picture(file)
            failed += bool(errors)
            print(paths.shown(file), *errors, flush=True)
    return 1 if failed else 0


def _time_and_runs(board: Json) -> dict[str, str | Sequence[str]]:
    """The last five minutes; of a dashboard with a time of its own that one, and runs to show."""
    if str(board["time"]["from"]).startswith("now"):
        return {"from": "now-5m", "to": "now"}
    newest = [record.testid for record in RunRecord.read_all() if record.ended][:_COMPARED]
    return {"var-runs": newest, "var-base": newest[-1:]}


@contextmanager
def _runs(begin: bool) -> Iterator[None]:
    """Runs that fill the dashboards, and one that goes on until the pictures are taken."""
    if not begin:
        yield
        return
    for arguments in _BEFORE:
        subprocess.run([str(paths.ROOT / "lab"), "run", *arguments], check=False)
    live = subprocess.Popen([str(paths.ROOT / "lab"), "run", *_DURING])
    try:
        time.sleep(_UNTIL_SEEN_SECONDS)
        yield
    finally:
        live.terminate()
        live.wait()


if __name__ == "__main__":
    sys.exit(main())
