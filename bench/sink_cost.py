"""What k6's outputs cost it: CPU per request at a fixed rate, without and with each."""

import sys

from bench.k6_run import K6Load, K6Run, run_k6
from bench.pairs import PairSide, compare, pairs_parser
from bench.running_lab import running_lab
from spikelab.settings import DATABASE, Endpoints

# Two seconds' worth, a plan's default, would be users that only cost their start.
_MOST_USERS = 500
_SINKS = ("prometheus", "influxdb")
# A run that started less of its rate measured a generator at its limit.
_ENOUGH = 0.98


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

    def side(self, sink: str) -> PairSide:
        return PairSide(sink, lambda: self.run(sink, self.seconds).cpu_us_per_request)

    def run(self, sink: str, seconds: float) -> K6Run:
        run = run_k6(self.load, seconds, self._env, self._outputs[sink])
        if run.requests < _ENOUGH * self.load.value * seconds:
            self.short += 1
            print(f"      {sink}: {run.requests} requests, {run.dropped} dropped", flush=True)
        return run


def main() -> int:
    """Returns the exit code: 1 if the rate was not reached in some run."""
    parser = pairs_parser(__doc__)
    parser.add_argument("--rate", type=int, default=5000, help="requests a second, default 5000")
    parser.add_argument("--sink", choices=_SINKS, help="this one only, default both")
    asked = parser.parse_args()
    with running_lab() as endpoints:
        bench = SinkCost(endpoints, asked.rate, asked.seconds)
        bench.run("none", min(10, asked.seconds))
        bench.short = 0  # that run warmed up the target
        unit = f"k6's CPU, µs a request at {asked.rate:,}/s, {asked.seconds:g} s a run"
        for sink in [asked.sink] if asked.sink else _SINKS:
            compare(bench.side("none"), bench.side(sink), asked.pairs, unit)
    if bench.short:
        print(f"invalid: {bench.short} runs did not start their rate", file=sys.stderr)
    return 1 if bench.short else 0


if __name__ == "__main__":
    sys.exit(main())
