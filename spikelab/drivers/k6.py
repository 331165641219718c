"""k6: the command line for a plan, and what its exit codes mean."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from spikelab.drivers import Job
from spikelab.drivers.k6_bodies import read_bodies
from spikelab.drivers.k6_summary import read_summary, remove_requests
from spikelab.drivers.process import ask, was_killed
from spikelab.drivers.summary import PhaseSummary
from spikelab.plans.model import Plan
from spikelab.plans.scripts import DriverName
from spikelab.runtime import DriverCommand, Endpoints, Runtime
from spikelab.stack_settings import DATABASE
from spikelab.units import parse_whole_number

# k6's own variable and default for its web dashboard.
DASHBOARD_PORT = parse_whole_number(os.environ.get("K6_WEB_DASHBOARD_PORT", "")) or 5665
DASHBOARD_URL = f"http://127.0.0.1:{DASHBOARD_PORT}"
# What a script's own abort looks like in k6's log: only the middle is for people.
_ABORT = re.compile(r"test aborted: (.*?) at \w+ \(")
# 99: thresholds crossed, which is a valid result (docs: k6 exit codes).
_VALID_EXITS = (0, 99)
_EXITS = {
    100: "set-up timed out",
    101: "tear-down timed out",
    102: "a timeout",
    103: "it could not be paused or resumed",
    104: "invalid options",
    105: "it was stopped from outside",
    106: "its REST API could not start",
    107: "an exception in the script",
    108: "the script aborted the test",
    109: "it crashed",
}


class K6:
    """See `Driver`."""

    name: DriverName = "k6"
    summary_file = "k6-summary.json"

    def command(self, runtime: Runtime, job: Job) -> DriverCommand:
        outputs = _outputs(job.sees, job.sinks, job.live)
        arguments = [
            "run",
            "--tag",
            f"testid={job.testid}",
            "--summary-export",
            runtime.driver_path(self.summary_file, job.testid),
            *(word for output in outputs for word in ("--out", output)),
            runtime.driver_script(self.name, job.plan.script_of(self.name)),
        ]
        env = {
            "LAB_PLAN": runtime.driver_path("plan.json", job.testid),
            "K6_FEATURES": "native-histograms",
            "K6_PROMETHEUS_RW_SERVER_URL": f"{job.sees.prometheus}/api/v1/write",
            "K6_PROMETHEUS_RW_PUSH_INTERVAL": "1s",
            "K6_PROMETHEUS_RW_STALE_MARKERS": "true",
            **({"K6_WEB_DASHBOARD_PORT": str(DASHBOARD_PORT)} if job.live else {}),
            "K6_NO_USAGE_REPORT": "true",
            # Users cost memory, not CPU: collect garbage early (k6/README.md has the figures).
            **({"GOGC": os.environ.get("GOGC", "10")} if job.plan.spike else {}),
        }
        port = DASHBOARD_PORT if job.live else None
        return runtime.driver(self.name, arguments, env, job.testid, port)

    def version(self, runtime: Runtime, testid: str) -> str:
        said = ask(runtime.driver(self.name, ["version"], {}, testid))
        return next((word for word in said.split() if word.startswith("v")), "unknown")

    def why_failed(self, code: int, log: Path) -> str | None:
        if code in _VALID_EXITS:
            return None
        reason = _EXITS.get(code, "killed" if was_killed(code) else "unknown")
        said = _last_word(log.read_text(errors="replace").splitlines())
        return f"k6 ended with {code} ({reason}): {said} (see {log.name} of the run)"

    def remove_secrets(self, folder: Path) -> None:
        remove_requests(folder / self.summary_file)

    def read_summary(self, folder: Path, plan: Plan) -> list[PhaseSummary]:
        starts = {phase.name: phase.start_seconds for phase in plan.phases}
        phases = read_summary(folder / self.summary_file, starts)
        bodies = read_bodies(folder / f"{self.name}.log")
        for phase in phases:
            phase.errors.bodies = bodies.get(phase.name, [])
        return phases


def _outputs(sees: Endpoints, sinks: Sequence[str], live: bool) -> list[str]:
    outputs = []
    if "prometheus" in sinks:
        outputs.append("experimental-prometheus-rw")
    if "influxdb" in sinks:
        outputs.append(f"influxdb={sees.influxdb}/{DATABASE}")
    if live:
        outputs.append("web-dashboard")
    return outputs


def _last_word(lines: Sequence[str]) -> str:
    errors = [line for line in lines if "level=error" in line or "level=fatal" in line]
    said = (errors or [line for line in lines if line.strip()] or ["it said nothing"])[-1]
    message = _ABORT.search(said)
    return message[1] if message else said.strip()
