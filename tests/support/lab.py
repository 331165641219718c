"""A lab of the tests' own: real processes, on free ports, in a folder of its own."""

import itertools
import json
import os
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spikelab import paths
from spikelab.errors import EXIT_INCONCLUSIVE, EXIT_OK, EXIT_SLO_MISSED
from spikelab.settings import PORT_NAMES
from spikelab.stores import InfluxDB, Prometheus
from tests.support.ports import free_ports

# A run's report takes as much CPU as all the rest of ./lab; tests of reports ask for theirs.
WITHOUT_REPORTS = {"LAB_REPORT": "none"}
# Variables of every target that tests start; `tests/conftest.py` fills them.
java_options: dict[str, str] = {}
java_in_containers: dict[str, str] = {}


@dataclass(frozen=True)
class Lab:
    """Runs ./lab as a user would, with the environment of this lab."""

    env: dict[str, str]
    root: Path = paths.ROOT

    def __call__(self, *arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.root / "lab"), *arguments],
            cwd=self.root,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    def with_settings(self, **settings: str) -> "Lab":
        """The same lab, told more by its environment."""
        return replace(self, env={**self.env, **settings})

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(self.root / "lab"), *arguments],
            cwd=self.root,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            stdin=subprocess.DEVNULL,
        )

    def run(self, *arguments: str, exit_code: int = 0) -> dict[str, Any]:
        """`./lab run …`; asserts its exit code and returns the record."""
        return self._run(arguments, {exit_code})

    def run_unjudged(self, *arguments: str) -> dict[str, Any]:
        """`./lab run …` to its end: within its objectives or, on a busy machine, not."""
        return self._run(arguments, {EXIT_OK, EXIT_INCONCLUSIVE, EXIT_SLO_MISSED})

    def _run(self, arguments: tuple[str, ...], exit_codes: set[int]) -> dict[str, Any]:
        file = self.home / "record.json"
        file.unlink(missing_ok=True)
        result = self("run", *arguments, "--json", str(file))
        assert result.returncode in exit_codes, result.stdout + result.stderr
        record: dict[str, Any] = json.loads(file.read_text())
        return record

    def records(self) -> list[dict[str, Any]]:
        """All records of this lab, oldest first."""
        return [
            json.loads(path.read_text())
            for path in sorted((self.home / "results").glob("*/run.json"))
        ]

    @property
    def home(self) -> Path:
        return Path(self.env["LAB_HOME"])

    def url(self, port_name: str) -> str:
        return f"http://127.0.0.1:{self.env[port_name]}"

    @property
    def prometheus(self) -> Prometheus:
        return Prometheus(self.url("PROMETHEUS_PORT"))

    @property
    def influxdb(self) -> InfluxDB:
        return InfluxDB(self.url("INFLUXDB_PORT"))

    def processes(self) -> list[int]:
        """Ids of all processes with this lab's home in their environment."""
        marker = f"LAB_HOME={self.home}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if marker in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:
                continue
        return found


def make_lab(home: Path) -> Lab:
    ports = dict(zip(PORT_NAMES, map(str, free_ports(len(PORT_NAMES))), strict=True))
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TOMCAT_", "TARGET_", "LAB_"))
    }
    ours = {"LAB_HOME": str(home), "LAB_RUNTIME": "host", **WITHOUT_REPORTS}
    return Lab({**own, **java_options, **ports, **ours})


def wait_until(condition: Any, seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.1)


def in_state(lab: Lab, testid: str) -> list[str]:
    """The states of a run's phases in InfluxDB."""
    rows = lab.influxdb.query(f"SELECT * FROM events WHERE testid = '{testid}'")
    return [row["state"] for row in rows]


def errors_in_series(lab: Lab, testid: str) -> dict[str, float]:
    """Failures of a run by class, from the series that dashboards draw."""
    rate = f'loadtest:errors:rate{{testid="{testid}"}}'
    found = lab.prometheus.query(f"sum by (class) (sum_over_time({rate}[5m]))")
    return {labels.removeprefix("class="): value for labels, value in found.items()}


def errors_in_record(record: dict[str, Any]) -> dict[str, int]:
    """The same from a run's record, which has its driver's own summary."""
    errors = record["steps"][0]["errors"]
    return {name: count for name, count in errors.items() if name != "bodies" and count}


def target_settings(**settings: int) -> list[str]:
    """Options of `./lab run` that set the target's variables."""
    pairs = (("--target-set", f"{name}={value}") for name, value in settings.items())
    return list(itertools.chain.from_iterable(pairs))


def requests_counted(prometheus: Prometheus, testid: str) -> float | None:
    """What the normalised rate adds up to."""
    rate = f'loadtest:requests:rate{{testid="{testid}"}}'
    return prometheus.value(f"sum(sum_over_time({rate}[5m]))")
