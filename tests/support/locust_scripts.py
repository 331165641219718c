"""The locustfiles, run by the real Locust."""

import json
import os
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Protocol

from spikelab import paths
from spikelab.stack.programs import locust_program

LONGEST_SECONDS = 60


class HasUrl(Protocol):
    """A target that stores events as well."""

    url: str


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(
    site: HasUrl,
    script: str,
    arguments: Sequence[str],
    out: IO[str] | int = subprocess.PIPE,
    port: int = 0,
    before: Sequence[Path] = (),
    **environ: str,
) -> subprocess.Popen[str]:
    """`port`: where master and workers meet; a free one for 0. `before`: locustfiles that are read
    before the script."""
    port = port or free_port()
    return subprocess.Popen(
        [
            str(locust_program()),
            f"--locustfile={','.join(map(str, [*before, paths.LOCUST / script]))}",
            f"--master-bind-port={port}",
            f"--master-port={port}",
            "--only-summary",
            *arguments,
        ],
        env={**os.environ, "BASE_URL": site.url, "INFLUXDB_URL": site.url, **environ},
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(site: HasUrl, script: str, arguments: Sequence[str], **environ: str) -> tuple[int, str]:
    process = start(site, script, ["--headless", *arguments], **environ)
    said, _ = process.communicate(timeout=LONGEST_SECONDS)
    return process.returncode, said


def plan_file(
    folder: Path, site: HasUrl, phases: list[dict[str, Any]], path: str, **request: object
) -> str:
    plan = {
        "testid": "t1",
        "target": {"url": site.url},
        "request": {"path": path, "timeout": "5s", **request},
        "phases": phases,
        "slo": ["success >= 100%"],
        "summary": str(folder / "summary.json"),
        "events": {"url": site.url, "database": "myk6db"},
    }
    file = folder / "plan.json"
    file.write_text(json.dumps(plan))
    return str(file)
