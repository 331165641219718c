"""Authorization at full throttle: requests a second with RS256, and their ratio to plain ones."""

import statistics
import sys

from bench.k6_run import K6Load, K6Run, run_k6
from bench.pairs import PairSide, compare, pairs_parser
from bench.running_lab import running_lab
from spikelab.settings import Endpoints

_REQUESTS = {
    "hello": ("steady.js", "/hello?ms=0"),
    "authz": ("authz.js", "/api/v1/authz/ping"),
}


class Throttle:
    """Users without a pause, on one path or the other."""

    def __init__(self, endpoints: Endpoints, users: int, seconds: float) -> None:
        self.seconds = seconds
        self.loads = {
            name: K6Load(script, endpoints.target, path, "users", users)
            for name, (script, path) in _REQUESTS.items()
        }
        self.runs: dict[str, list[K6Run]] = {name: [] for name in _REQUESTS}

    def side(self, name: str) -> PairSide:
        return PairSide(name, lambda: self._run(name).good_rate)

    def warm_up(self) -> None:
        for load in self.loads.values():
            run_k6(load, self.seconds)

    def _run(self, name: str) -> K6Run:
        run = run_k6(self.loads[name], self.seconds)
        self.runs[name].append(run)
        return run


def main() -> int:
    """Returns the exit code: 1 if an answer was wrong."""
    parser = pairs_parser(__doc__)
    parser.add_argument("--users", type=int, default=50, help="default 50")
    asked = parser.parse_args()
    with running_lab() as endpoints:
        bench = Throttle(endpoints, asked.users, asked.seconds)
        bench.warm_up()
        unit = f"good answers a second, {asked.users} users, {asked.seconds:g} s a run"
        compare(bench.side("hello"), bench.side("authz"), asked.pairs, unit)
    for name, runs in bench.runs.items():
        rate = statistics.geometric_mean(run.good_rate for run in runs)
        p99 = [run.p99_ms for run in runs]
        print(
            f"{name}: {rate:,.0f}/s (geometric mean), p99 {statistics.median(p99):.1f} ms "
            f"(median of runs), {max(p99):.1f} ms (worst run)"
        )
    wrong = sum(run.requests - run.good for runs in bench.runs.values() for run in runs)
    if wrong:
        print(f"invalid: {wrong} requests without a good answer", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
