"""Short real runs of k6's scripts against a small real server: for tests/unit/k6."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from spikelab import paths
from tests.support.http_server import Server

K6 = paths.BIN / "k6"
SUMMARY, EXPORTED = "k6-summary.json", "exported.json"
needs_k6 = pytest.mark.skipif(not K6.is_file(), reason="k6 is not built: ./lab up builds it")


@dataclass
class Run:
    """What a run left behind."""

    code: int
    said: str
    seconds: float
    summary_file: Path  # what the lab reads; of a plan alone
    exported_file: Path  # by --summary-export
    samples: list[dict[str, Any]] = field(repr=False)

    @property
    def summary(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.exported_file.read_bytes())
        return document

    def count(self, metric: str) -> int:
        return int(self.summary["metrics"][metric]["count"])


def plan(server: Server, phases: list[dict[str, Any]], **request: object) -> dict[str, Any]:
    """A plan as the lab hands it over."""
    given: dict[str, object] = {"method": "GET", "path": "/hello?ms=1", "headers": {}, "body": None}
    return {
        "schema": 1,
        "testid": "t1",
        "plan": "test",
        "driver": "k6",
        "target": {"url": server.url},
        "request": {**given, "timeout": "2s", "keep_alive": True, **request},
        "phases": [{"start": "0s", **phase} for phase in phases],
        "slo": [],
        "summary": None,
        "events": {"url": server.url, "database": "myk6db"},
    }


class K6Runs:
    """Starts scripts in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, script: str, given: Mapping[str, Any], *arguments: str) -> "Running":
        """`given`: a plan, or environment variables by name."""
        env = {**os.environ, "K6_NO_USAGE_REPORT": "true"}
        if "phases" in given:
            plan_file = self.folder / "plan.json"
            plan_file.write_text(json.dumps(given | {"summary": str(self.folder / SUMMARY)}))
            given = {"LAB_PLAN": str(plan_file)}
        words = [word for name, value in given.items() for word in ("-e", f"{name}={value}")]
        outputs = ["--summary-export", str(self.folder / EXPORTED)]
        outputs += ["--out", f"json={self.folder / 'samples.json'}"]
        command = [str(K6), "run", "--quiet", *outputs, *words, *arguments]
        command.append(str(paths.K6 / f"{script}.js"))
        return Running(command, env, self.folder)

    def run(self, script: str, given: Mapping[str, Any], *arguments: str) -> Run:
        return self.start(script, given, *arguments).wait()


class Running:
    """A run that goes."""

    def __init__(self, command: list[str], env: Mapping[str, str], folder: Path) -> None:
        self._folder = folder
        self._begun = time.monotonic()
        pipe, both = subprocess.PIPE, subprocess.STDOUT
        self._process = subprocess.Popen(command, env=env, stdout=pipe, stderr=both, text=True)

    @property
    def pid(self) -> int:
        return self._process.pid

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def wait(self) -> Run:
        said, _ = self._process.communicate(timeout=60)
        seconds = time.monotonic() - self._begun
        samples = self._folder / "samples.json"
        lines = samples.read_text().splitlines() if samples.exists() else []
        points = [each for each in map(json.loads, lines) if each["type"] == "Point"]
        files = (self._folder / SUMMARY, self._folder / EXPORTED)
        return Run(self._process.returncode, said, seconds, *files, points)


def unused_url() -> str:
    """The URL of a port where nothing listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{one.getsockname()[1]}"
