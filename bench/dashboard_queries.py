"""How long the dashboards' queries take over half an hour while 5,000 requests/s are sent.

Every query of every panel, straight to the stores, as often as if all dashboards were open. First
the window is filled: a spike with raw samples, then a modest rate. Takes the window's length and
two minutes.
"""

import statistics
import subprocess
import sys
import threading
import time
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from bench.running_lab import running_lab
from bench.sink_cost import SinkCost
from grafana.lint.reading import Query, all_dashboards, panel_queries
from spikelab import paths
from spikelab.results.run import RunRecord
from spikelab.settings import Endpoints
from tests.stack.dashboards import Stores, View, ask, interpolated

LIMIT_SECONDS = 0.3
_HISTORY_RATE = 100
# Until the load is there, and until its users have their connections.
_WARM_UP_SECONDS = 10
# All dashboards are open, each at this refresh.
_REFRESH_SECONDS = 5
_SLOWEST_SHOWN = 8


def main() -> int:
    """Returns the exit code: 1 where p95 is above the limit or the load was not reached."""
    asked = _arguments()
    with running_lab() as endpoints:
        if not asked.filled:
            _fill(asked.minutes * 60 - asked.seconds)
        load = SinkCost(endpoints, asked.rate, asked.seconds + 2 * _WARM_UP_SECONDS)
        load.probe("prometheus")
        # Warms up the target and is not judged.
        load.run("prometheus", _WARM_UP_SECONDS)
        load.short = 0
        with _under(load):
            took = _measure(endpoints, asked.minutes * 60, asked.seconds)
    p95 = _show(took)
    if load.short:
        print(f"invalid: the load did not start {load.load.value:,} requests/s", file=sys.stderr)
    return 1 if load.short or p95 > LIMIT_SECONDS else 0


def _arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30, help="shown, default 30")
    parser.add_argument("--rate", type=int, default=5000, help="requests a second, default 5000")
    parser.add_argument("--seconds", type=float, default=60, help="of measuring, default 60")
    parser.add_argument("--filled", action="store_true", help="the lab has run for that long")
    return parser.parse_args()


def _fill(seconds: float) -> None:
    """What a dashboard shows of the time before: a spike, then a rate until the time is over."""
    until = time.monotonic() + seconds
    _run("tomcat-spike")
    rest = int(until - time.monotonic())
    if rest > 0:
        _run("steady", "--set", f"rate={_HISTORY_RATE}", "--set", f"duration={rest}s")


def _run(*arguments: str) -> None:
    subprocess.run([str(paths.ROOT / "lab"), "run", *arguments], check=True)


@contextmanager
def _under(load: SinkCost) -> Iterator[None]:
    """While k6 sends the load and pushes to Prometheus as the lab has it do."""
    sender = threading.Thread(target=load.run, args=("prometheus", load.seconds))
    sender.start()
    time.sleep(_WARM_UP_SECONDS)
    try:
        yield
    finally:
        sender.join()


def _measure(endpoints: Endpoints, window: float, seconds: float) -> dict[Query, list[float]]:
    """Seconds of each query, by the query."""
    stores = Stores(endpoints.prometheus, str(endpoints.influxdb))
    boards = list(all_dashboards().values())
    # Of the dashboards that compare runs: those that filled the window.
    testids = [record.testid for record in RunRecord.read_all()][:2]
    runs = {"runs": testids, "base": testids[-1]}
    took: dict[tuple[str, str, str], tuple[Query, list[float]]] = {}
    until = time.monotonic() + seconds
    with httpx.Client() as client:
        while (begun := time.monotonic()) < until:
            for board in boards:
                for query in panel_queries(board):
                    live = str(board["time"]["from"]).startswith("now")
                    # Otherwise it shows seconds since the start of each run.
                    end = int((time.time() if live else window) * 1000)
                    view = View(end - int(window * 1000), end, runs)
                    asked = interpolated(query, board, view)
                    started = time.perf_counter()
                    answer = ask(asked, stores, client)
                    elapsed = time.perf_counter() - started
                    if answer.error:
                        raise RuntimeError(str(answer))
                    key = (query.dashboard, query.place, query.ref_id)
                    took.setdefault(key, (query, []))[1].append(elapsed)
            time.sleep(max(0, _REFRESH_SECONDS - (time.monotonic() - begun)))
    return dict(took.values())


def _show(took: dict[Query, list[float]]) -> float:
    """Prints the dashboards and the slowest queries; returns the p95 of all, in seconds."""
    by_dashboard: dict[str, list[float]] = defaultdict(list)
    for query, seconds in took.items():
        by_dashboard[query.dashboard] += seconds
    everything = [second for seconds in took.values() for second in seconds]
    print(f"{'ms':<14}{'queries':>9}{'asked':>8}{'p50':>8}{'p95':>8}{'max':>8}")
    for name, seconds in [*by_dashboard.items(), ("all", everything)]:
        count = sum(1 for query in took if name in {query.dashboard, "all"})
        print(
            f"{name:<14}{count:>9}{len(seconds):>8}{_ms(statistics.median(seconds))}"
            f"{_ms(_p95(seconds))}{_ms(max(seconds))}"
        )
    print("slowest:")
    slowest = sorted(took, key=lambda query: -_p95(took[query]))[:_SLOWEST_SHOWN]
    for query in slowest:
        print(f"{_ms(_p95(took[query]))}  {query}")
    return _p95(everything)


def _p95(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=20)[-1] if len(seconds) > 1 else seconds[0]


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:>8.1f}"


if __name__ == "__main__":
    sys.exit(main())
