"""What k6's outputs cost it: CPU per request at a fixed rate, without and with each."""

import sys
from dataclasses import replace

from bench.k6_run import K6Load, K6Run, run_k6
from bench.pairs import PairSide, carried_rate, compare, pairs_parser, warm_up
from bench.running_lab import running_lab
from spikelab.settings import DATABASE, Endpoints

# Two seconds' worth, a plan's default, would be users that only cost their start.
_MOST_USERS = 500
_SINKS = ("prometheus", "influxdb")
# A run that started less of its rate measured a generator at its limit.
_ENOUGH = 0.98
_PROBE_SECONDS = 5


class SinkCost:
    """Runs at one rate with one sink after the other; keeps what may spoil the figures."""

    def __init__(self, endpoints: Endpoints, rate: int, seconds: float) -> None:
        self.load = K6Load("steady.js", endpoints.target, "/hello?ms=0", "rate", rate, _MOST_USERS)
        self.seconds = seconds
        self.short = 0
        self._outputs = {
            "none": [],
            "prometheus": ["experimental-prometheus-rw"],
            "influxdb": [f"influxdb={endpoints.influxdb}/{DATABASE}"],
        }
        self._env = {
            # As the lab and the compose stack set them.
            "K6_FEATURES": "native-histograms",
            "K6_PROMETHEUS_RW_SERVER_URL": f"{endpoints.prometheus}/api/v1/write",
            "K6_PROMETHEUS_RW_PUSH_INTERVAL": "1s",
            "K6_PROMETHEUS_RW_STALE_MARKERS": "true",
        }

    def measure(self, sink: str, pairs: int) -> bool:
        """Compares no sink with this one and prints it; whether the figures are valid."""
        self.probe(sink)
        none, with_it = self.side("none"), self.side(sink)
        steady = warm_up([none, with_it])
        self.short = 0
        unit = f"k6's CPU, µs a request at {self.load.value:,}/s, {self.seconds:g} s a run"
        compare(none, with_it, pairs, unit)
        if self.short:
            print(f"invalid: {self.short} runs did not start their rate", file=sys.stderr)
        return steady and not self.short

    def side(self, sink: str) -> PairSide:
        return PairSide(sink, lambda: self.run(sink, self.seconds).cpu_us_per_request)

    def run(self, sink: str, seconds: float) -> K6Run:
        run = run_k6(self.load, seconds, self._env, self._outputs[sink])
        if not self._started(run):
            self.short += 1
            print(f"      {sink}: {run.requests} requests, {run.dropped} dropped", flush=True)
        return run

    def probe(self, sink: str) -> None:
        """Lowers the rate to one that this machine carries with a sink."""

        def starts(rate: int) -> bool:
            self.load = replace(self.load, value=rate)
            env, outputs = self._env, self._outputs[sink]
            return self._started(run_k6(self.load, _PROBE_SECONDS, env, outputs))

        self.load = replace(self.load, value=carried_rate(self.load.value, starts))

    def _started(self, run: K6Run) -> bool:
        return run.requests >= _ENOUGH * self.load.value * run.seconds


def main() -> int:
    """Returns the exit code: 1 if a run did not start its rate or the machine was never steady."""
    parser = pairs_parser(__doc__)
    parser.add_argument("--rate", type=int, default=5000, help="a second at most, default 5000")
    parser.add_argument("--sink", choices=_SINKS, help="this one only, default both")
    asked = parser.parse_args()
    valid = True
    with running_lab() as endpoints:
        for sink in [asked.sink] if asked.sink else _SINKS:
            bench = SinkCost(endpoints, asked.rate, asked.seconds)
            valid = bench.measure(sink, asked.pairs) and valid
    return 0 if valid else 1


if __name__ == "__main__":
    sys.exit(main())
