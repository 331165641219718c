"""One run of one of k6/*.js, with a plan as the lab hands it over, and what it cost."""

import json
import os
import secrets
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spikelab import paths
from spikelab.drivers.k6 import read_summary

K6 = paths.BIN / "k6"
PHASE = "bench"
# 99: a threshold was missed, such as a dropped iteration: `dropped` says it.
_VALID_EXITS = (0, 99)
# What a run may take beyond its duration before it is killed.
_GRACE_SECONDS = 120


@dataclass(frozen=True)
class K6Load:
    """One phase of one of k6/*.js on one path; `kind` is "rate" or "users", as in a plan."""

    script: str
    url: str
    path: str
    kind: str
    value: int
    most_users: int | None = None

    def plan(self, seconds: float, summary: Path) -> dict[str, object]:
        """What LAB_PLAN holds (docs/plans.md). No phase is annotated."""
        request: dict[str, object] = {
            "method": "GET",
            "path": self.path,
            "headers": {},
            "body": None,
            "timeout": "10s",
            "keep_alive": True,
        }
        phase = {
            "name": PHASE,
            "kind": self.kind,
            "value": self.value,
            "start": "0s",
            "duration": f"{seconds:g}s",
            "url": None,
            "ramp_up": None,
            "period": None,
            "body_bytes": None,
            "most_users": self.most_users,
        }
        return {
            "schema": 1,
            "testid": f"bench-{secrets.token_hex(4)}",
            "plan": "bench",
            "driver": "k6",
            "target": {"url": self.url},
            "request": request,
            "phases": [phase],
            "slo": [],
            "summary": str(summary),
            "events": None,
        }


@dataclass(frozen=True)
class K6Run:
    """Figures of a run. CPU is the whole process's, its start included, as the kernel counts it."""

    seconds: float
    cpu_seconds: float
    requests: int
    good: int
    dropped: int
    p99_ms: float

    @property
    def cpu_us_per_request(self) -> float:
        return self.cpu_seconds / self.requests * 1e6

    @property
    def good_rate(self) -> float:
        return self.good / self.seconds


def run_k6(
    load: K6Load, seconds: float, env: Mapping[str, str] | None = None, outputs: Sequence[str] = ()
) -> K6Run:
    """Runs the load. Raises RuntimeError, with k6's last words, when k6 could not."""
    with tempfile.TemporaryDirectory() as folder:
        plan, summary, log = (Path(folder, name) for name in ("plan.json", "summary.json", "log"))
        plan.write_text(json.dumps(load.plan(seconds, summary)))
        command = [str(K6), "run"]
        command += [word for output in outputs for word in ("--out", output)]
        command.append(str(paths.K6 / load.script))
        own = {"LAB_PLAN": str(plan), "K6_NO_USAGE_REPORT": "true"}
        with log.open("wb") as said:
            code, cpu_seconds = _timed(
                command, {**os.environ, **(env or {}), **own}, said.fileno(), seconds
            )
        if code not in _VALID_EXITS:
            raise RuntimeError(f"{load.script} ended with {code}: {log.read_text()[-2000:]}")
        (phase,) = read_summary(summary, {PHASE: 0})
    assert phase.latency is not None
    return K6Run(
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        requests=phase.requests,
        good=phase.requests - phase.failures,
        dropped=phase.dropped,
        p99_ms=phase.latency.percentile_seconds(0.99) * 1000,
    )


def _timed(
    command: Sequence[str], env: Mapping[str, str], output: int, seconds: float
) -> tuple[int, float]:
    """(exit code, CPU seconds) of a process that is killed when it takes far too long."""
    process = subprocess.Popen(command, env=env, stdout=output, stderr=output)
    killer = threading.Timer(seconds + _GRACE_SECONDS, process.kill)
    killer.start()
    try:
        # Of this process alone, to the microsecond, at its end.
        _, status, used = os.wait4(process.pid, 0)
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        killer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_utime + used.ru_stime
