"""How near `./lab capacity` comes to a capacity that is known: M/M/16 by Erlang's C formula."""

import json
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.running_lab import running_lab
from spikelab import paths
from tests.support.servers.known_capacity import known_capacity
from tests.support.servers.known_plan import JITTER, RandomServer, plan

# A quarter of what k6 carries at ease: what the machine adds to an answer is small against 144 ms.
_SERVER = RandomServer(workers=16, service_seconds=0.032, limit_seconds=0.144)
_FIRST = 400
_NEAR = 0.05


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
            precision="2.5%",
            confirmations=0,
            keys=JITTER,
        )
        file = folder / "answer.json"
        command = [str(paths.ROOT / "lab"), "capacity", known, "--fresh", "--json", str(file)]
        subprocess.run(command, check=True)
    answer = json.loads(file.read_text())["answer"]
    return answer["highest_pass"], answer["lowest_fail"]


def main() -> int:
    """Returns the exit code: 1 where an end is more than 5 % off."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=1, help="each with a seed, default 1")
    parser.add_argument("--seconds", type=int, default=60, help="length of a step, default 60")
    asked = parser.parse_args()
    known, near = _SERVER.capacity(), True
    with running_lab(), TemporaryDirectory() as folder:
        for seed in range(1, asked.searches + 1):
            ends = search(Path(folder), seed, asked.seconds)
            off = [end / known - 1 for end in ends]
            near = near and max(map(abs, off)) <= _NEAR
            print(
                f"known {known:.1f}/s, answer {ends[0]:g} to {ends[1]:g}/s "
                f"({off[0]:+.1%}, {off[1]:+.1%})",
                flush=True,
            )
    return 0 if near else 1


if __name__ == "__main__":
    sys.exit(main())
