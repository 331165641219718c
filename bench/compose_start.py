"""How long Docker Compose takes from nothing to healthy, images present, and what it waits for.

    .lab/venv/bin/python -m bench.compose_start --times 5 --without grafana

Each time from nothing: no container, network or volume of the project, on ports of its own. Exit
code 1 where one of the times is above 30 s.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from datetime import datetime

from spikelab.settings import PORT_NAMES
from spikelab.stack.engine import compose_command
from tests.compose.images.stand_ins import provide
from tests.support.ports import free_ports

_MOST_SECONDS = 30
_PROJECT = "spikelab-bench-start"


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5, help="default 5")
    parser.add_argument("--without", default="", help="services to leave out: grafana")
    options = parser.parse_args()
    without = options.without.split(",")
    ports = map(str, free_ports(len(PORT_NAMES)))
    # What the calls below are given as well.
    os.environ.update({**dict(zip(PORT_NAMES, ports, strict=True)), **provide().settings})
    _compose("build")
    services = [name for name in _compose("config", "--services").split() if name not in without]
    try:
        seconds = [_start(services) for _ in range(options.times)]
    finally:
        _compose("down", "--volumes", "--remove-orphans", "--rmi", "local")
    print(f"median {statistics.median(seconds):.1f} s, most {max(seconds):.1f} s")
    return int(max(seconds) > _MOST_SECONDS)


def _start(services: Sequence[str]) -> float:
    _compose("down", "--volumes", "--remove-orphans")
    begun = time.time()
    _compose("up", "--detach", "--wait", *services)
    took = time.time() - begun
    print(f"{took:.1f} s: " + "; ".join(_states(begun)), flush=True)
    return took


def _states(begun: float) -> list[str]:
    """When each container was started and found healthy, in seconds since the command."""
    ids = _compose("ps", "--all", "--quiet").split()
    said = subprocess.run(["docker", "inspect", *ids], capture_output=True, check=True).stdout
    found = []
    for container in json.loads(said):
        state = container["State"]
        good = [check for check in state.get("Health", {}).get("Log", []) if not check["ExitCode"]]
        times = [state["StartedAt"], *(check["End"] for check in good[:1])]
        after = [f"{datetime.fromisoformat(at[:26]).timestamp() - begun:.1f}" for at in times]
        service = container["Config"]["Labels"]["com.docker.compose.service"]
        found.append((after[-1], f"{service} " + ", healthy ".join(after)))
    return [text for _, text in sorted(found, key=lambda each: float(each[0]))]


def _compose(*arguments: str) -> str:
    return subprocess.run(
        compose_command(*arguments, profiles=False),
        env={**os.environ, "COMPOSE_PROJECT_NAME": _PROJECT},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    ).stdout


if __name__ == "__main__":
    sys.exit(main())
