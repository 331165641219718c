"""How long after its answer a request is on `load-test`.

A server of the bench's own answers k6's requests and notes when; meanwhile the panels' queries are
asked ten times a second. The n-th answer is visible when a panel first counts n. A dashboard asks
once a second at most, which adds up to a second: the figure that is judged holds all of it. Where a
Grafana and a Chromium are present, the number on the screen is read as well.
"""

import statistics
import sys
import threading
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from bench.dashboard_browser import chromium, find_chromium
from bench.running_lab import running_lab
from bench.sink_cost import SinkCost
from grafana.lint.reading import Query, all_dashboards, panel_queries
from grafana.src.signals import load
from spikelab import signals
from spikelab.settings import Endpoints
from spikelab.signals import Signal
from tests.stack.dashboards import Stores, View, ask, interpolated

LIMIT_SECONDS, AIM_SECONDS = 6.0, 3.0
_REFRESH_SECONDS = 1.0
_BETWEEN_LOOKS_SECONDS = 0.1
# After the last answer: until the last push has been counted.
_PATIENCE_SECONDS = 15
# Before a run, so that a panel does not show the one before.
_PAUSE_SECONDS = 5
# What the panels count: all that ended, and the good ones, a second.
_SHOWN = (load.REQUESTS_IN_RANGE, signals.GOOD_RATE)

BOARD = all_dashboards()["load-test"]
# The phase of run_k6: whatever else runs in this lab is left out.
BENCH_PHASE = "bench"


class Answers:
    """A server that answers at once and remembers when."""

    def __init__(self) -> None:
        self.at: list[float] = []
        at = self.at

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()
                at.append(time.time())

            def log_message(self, *_: object) -> None:
                """Nothing is printed."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def serving(self) -> Iterator[None]:
        thread = threading.Thread(target=self._server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()


def main() -> int:
    """Returns the exit code: 1 where an answer was visible later than the limit."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30, help="of each run, default 30")
    parser.add_argument("--rate", type=int, default=20, help="requests a second, default 20")
    asked = parser.parse_args()
    with running_lab() as endpoints:
        worst = [
            _delay(endpoints, signal.name, asked.rate, asked.seconds, _by_query(endpoints, signal))
            + _REFRESH_SECONDS
            for signal in _SHOWN
        ]
        if endpoints.grafana and find_chromium():
            worst.append(_on_the_screen(endpoints, asked.rate, asked.seconds))
        else:
            print("on the screen: not measured, as there is no Grafana or no Chromium")
    print(
        f"visible at most {max(worst):.1f} s after the answer, the refresh included "
        f"(limit {LIMIT_SECONDS:g}, aim {AIM_SECONDS:g})"
    )
    return 1 if max(worst) > LIMIT_SECONDS else 0


def _delay(
    endpoints: Endpoints, name: str, rate: int, seconds: float, look: Callable[[int], float]
) -> float:
    """The longest delay in a run; `look` returns what is counted since a moment (epoch ms)."""
    answers, seen = Answers(), list[float]()
    sender = SinkCost(endpoints, rate, seconds)
    sender.load = replace(sender.load, url=answers.url, path="/", most_users=rate)
    time.sleep(_PAUSE_SECONDS)
    begun = int(time.time() * 1000) - 1000
    with answers.serving():
        thread = threading.Thread(target=sender.run, args=("prometheus", seconds))
        thread.start()
        patience = time.time() + seconds + _PATIENCE_SECONDS
        while time.time() < patience and (thread.is_alive() or len(seen) < len(answers.at)):
            counted = round(look(begun))
            now = time.time()
            seen += [now] * (counted - len(seen))
            time.sleep(_BETWEEN_LOOKS_SECONDS)
        thread.join()
    if len(seen) != len(answers.at):
        raise RuntimeError(f"{name}: {len(answers.at)} answers, {len(seen)} counted")
    delays = [after - at for after, at in zip(seen, sorted(answers.at), strict=True)]
    cuts = statistics.quantiles(delays, n=20)
    print(
        f"{name:<22}{len(delays):>6} answers, seen after: p50 {statistics.median(delays):.2f} s, "
        f"p95 {cuts[-1]:.2f} s, max {max(delays):.2f} s",
        flush=True,
    )
    return max(delays)


def _by_query(endpoints: Endpoints, signal: Signal) -> Callable[[int], float]:
    """Asks a panel's query as the dashboard would, and adds up what it shows."""
    stores = Stores(endpoints.prometheus, str(endpoints.influxdb))
    query = _query_of(signal)
    client = httpx.Client()

    def look(begun_ms: int) -> float:
        view = View(begun_ms, int(time.time() * 1000), {"phase": BENCH_PHASE})
        asked = interpolated(query, BOARD, view)
        answer = ask(asked, stores, client)
        if answer.error:
            raise RuntimeError(str(answer))
        return answer.total * (asked.step_ms / 1000 if asked.step_ms else 1)

    return look


def _query_of(signal: Signal) -> Query:
    wanted = signal.query
    return next(query for query in panel_queries(BOARD) if query.text == wanted)


def _on_the_screen(endpoints: Endpoints, rate: int, seconds: float) -> float:
    """Reads the number of requests from the page, as it refreshes every second."""
    panel = _query_of(load.REQUESTS_IN_RANGE).panel
    assert panel is not None
    with chromium(str(endpoints.grafana)) as browser:
        start = str(int(time.time() * 1000))
        shown = {"from": start, "to": "now", "refresh": "1s", "var-phase": BENCH_PHASE}
        browser.open(BOARD["uid"], shown, [panel["title"]])
        return _delay(
            endpoints, "on the screen", rate, seconds, lambda _: browser.number(panel["title"])
        )


if __name__ == "__main__":
    sys.exit(main())
