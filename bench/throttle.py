"""Two loads of users without a pause, in turn: answers a second, their p99, the server's CPU."""

import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import psutil

from bench.k6_run import K6Load, K6Run, run_k6
from bench.pairs import PairSide, compare, show, warm_up
from spikelab.statistics.pairs import ratio_of


@dataclass(frozen=True)
class ThrottleRun:
    """What a driver saw of a run, and the CPU of the server that answered, as the kernel counts."""

    driver: K6Run
    server_cpu_seconds: float

    @property
    def server_us_per_request(self) -> float:
        return self.server_cpu_seconds / self.driver.requests * 1e6


_FIGURES: dict[str, Callable[[ThrottleRun], float]] = {
    "p99": lambda run: run.driver.p99_ms,
    "server's CPU a request": lambda run: run.server_us_per_request,
}


class Throttle:
    """Loads by their names, of which the second is compared with the first."""

    def __init__(self, loads: Mapping[str, K6Load], seconds: float) -> None:
        self.loads = loads
        self.seconds = seconds
        self.runs: dict[str, list[ThrottleRun]] = {name: [] for name in loads}

    def measure(self, pairs: int) -> bool:
        """Warms up, compares and prints; whether all that may spoil the figures was well."""
        first, second = (self._side(name) for name in self.loads)
        steady = warm_up([first, second])
        for runs in self.runs.values():
            runs.clear()
        users = max(load.value for load in self.loads.values())
        unit = f"good answers a second, {users} users, {self.seconds:g} s a run"
        compare(first, second, pairs, unit)
        for figure, of in _FIGURES.items():
            a, b = ([of(run) for run in runs] for runs in self.runs.values())
            show(
                figure,
                first.name,
                second.name,
                ratio_of([y / x for x, y in zip(a, b, strict=True)]),
            )
        for name, runs in self.runs.items():
            _show_runs(name, runs)
        return steady and self._all_good()

    def _side(self, name: str) -> PairSide:
        return PairSide(name, lambda: self._rate(name))

    def _rate(self, name: str) -> float:
        server = _listener(self.loads[name].url)
        before = _cpu_seconds(server)
        run = run_k6(self.loads[name], self.seconds)
        self.runs[name].append(ThrottleRun(run, _cpu_seconds(server) - before))
        return run.good_rate

    def _all_good(self) -> bool:
        wrong = sum(r.driver.requests - r.driver.good for runs in self.runs.values() for r in runs)
        if wrong:
            print(f"invalid: {wrong} requests without a good answer", file=sys.stderr)
        return not wrong


def _show_runs(name: str, runs: list[ThrottleRun]) -> None:
    rate = statistics.geometric_mean(run.driver.good_rate for run in runs)
    p99 = [run.driver.p99_ms for run in runs]
    server = statistics.geometric_mean(run.server_us_per_request for run in runs)
    driver = statistics.geometric_mean(run.driver.cpu_us_per_request for run in runs)
    print(
        f"{name}: {rate:,.0f}/s (geometric mean), p99 {statistics.median(p99):.1f} ms (median of "
        f"runs), {max(p99):.1f} ms (worst run), CPU a request {server:.1f} µs of the server, "
        f"{driver:.1f} µs of k6"
    )


def _listener(url: str) -> psutil.Process:
    """The process that listens at a URL of this machine."""
    port = urlsplit(url).port
    for connection in psutil.net_connections("tcp"):
        if connection.status != psutil.CONN_LISTEN or not connection.laddr or not connection.pid:
            continue
        if connection.laddr.port == port:
            return psutil.Process(connection.pid)
    raise RuntimeError(f"no process of this machine listens on port {port}")


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
