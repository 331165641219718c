"""Whether the interval that `./lab capacity` answers contains a capacity that is known: requests
that come as a Poisson process to 16 workers of exponential service times (M/M/16), by Erlang's C
formula for the response time. Ten searches take about two hours."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from subprocess import CalledProcessError, run
from tempfile import TemporaryDirectory

from bench.running_lab import running_lab
from spikelab import paths
from tests.support.servers.known_capacity import known_capacity
from tests.support.servers.known_plan import POISSON, RandomServer, plan

# A quarter of what k6 carries at ease: what the machine adds to an answer is small against 144 ms.
_SERVER = RandomServer(workers=16, service_seconds=0.032, limit_seconds=0.144)
_FIRST = 400
_CONTAINED_SHARE = 0.9


def search(folder: Path, seed: int, seconds: int) -> tuple[float, float]:
    """One search by the command: the highest rate that passed, the lowest that failed.

    Raises CalledProcessError where it found none.
    """
    with known_capacity(*_SERVER.arguments, "--seed", str(seed)) as url:
        known = plan(
            folder,
            url,
            _SERVER.objective,
            _FIRST,
            duration=f"{seconds}s",
            growth=1.1,
            confirmations=2,
            keys=POISSON,
        )
        file = folder / "answer.json"
        command = [str(paths.ROOT / "lab"), "capacity", known, "--fresh", "--json", str(file)]
        run(command, check=True)
    answer = json.loads(file.read_text())["answer"]
    return answer["highest_pass"], answer["lowest_fail"]


def main() -> int:
    """Returns the exit code: 1 where fewer than nine in ten intervals contain it."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=10, help="each with a seed, default 10")
    parser.add_argument("--seconds", type=int, default=60, help="length of a step, default 60")
    parser.add_argument("--first-seed", type=int, default=1, help="of the next one 1 more")
    asked = parser.parse_args()
    known, contained = _SERVER.capacity(), 0
    with running_lab(), TemporaryDirectory() as folder:
        for seed in range(asked.first_seed, asked.first_seed + asked.searches):
            try:
                low, high = search(Path(folder), seed, asked.seconds)
            except CalledProcessError as error:
                print(f"seed {seed}: no answer, exit code {error.returncode}", flush=True)
                continue
            contained += low <= known <= high
            print(
                f"seed {seed}: known {known:.1f}/s, answer {low:g} to {high:g}/s "
                f"({low / known - 1:+.1%}, {high / known - 1:+.1%})",
                flush=True,
            )
    print(f"{contained} of {asked.searches} intervals contain it")
    return 0 if contained >= _CONTAINED_SHARE * asked.searches else 1


if __name__ == "__main__":
    sys.exit(main())
