"""k6: the command line for a plan, and what its exit codes mean."""

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from spikelab.runtime import DriverCommand, Endpoints, Runtime
from spikelab.stack_settings import DATABASE
from spikelab.units import parse_whole_number

SUMMARY = "k6-summary.json"
# k6's own variable and default for its web dashboard.
DASHBOARD_PORT = parse_whole_number(os.environ.get("K6_WEB_DASHBOARD_PORT", "")) or 5665
# What a script's own abort looks like in k6's log: only the middle is for people.
_ABORT = re.compile(r"test aborted: (.*?) at \w+ \(")
DASHBOARD_URL = f"http://127.0.0.1:{DASHBOARD_PORT}"
# 99: thresholds crossed, which is a valid result (docs: k6 exit codes).
VALID_EXITS = (0, 99)
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


def command(
    runtime: Runtime, script: str, testid: str, sees: Endpoints, sinks: Sequence[str], live: bool
) -> DriverCommand:
    """The process that runs one of k6/*.js with these sinks."""
    outputs = [word for output in _outputs(sees, sinks, live) for word in ("--out", output)]
    summary = runtime.driver_path(SUMMARY, testid)
    arguments = [
        "run",
        "--tag",
        f"testid={testid}",
        "--summary-export",
        summary,
        *outputs,
        runtime.k6_script(script),
    ]
    env = {
        "LAB_PLAN": runtime.driver_path("plan.json", testid),
        "K6_FEATURES": "native-histograms",
        "K6_PROMETHEUS_RW_SERVER_URL": f"{sees.prometheus}/api/v1/write",
        "K6_PROMETHEUS_RW_PUSH_INTERVAL": "1s",
        "K6_PROMETHEUS_RW_STALE_MARKERS": "true",
        **({"K6_WEB_DASHBOARD_PORT": str(DASHBOARD_PORT)} if live else {}),
        "K6_NO_USAGE_REPORT": "true",
        # Users cost memory, not CPU: collect garbage early (k6/README.md has the figures).
        "GOGC": os.environ.get("GOGC", "10"),
    }
    return runtime.k6(arguments, env, testid, DASHBOARD_PORT if live else None)


def _outputs(sees: Endpoints, sinks: Sequence[str], live: bool) -> list[str]:
    outputs = []
    if "prometheus" in sinks:
        outputs.append("experimental-prometheus-rw")
    if "influxdb" in sinks:
        outputs.append(f"influxdb={sees.influxdb}/{DATABASE}")
    if live:
        outputs.append("web-dashboard")
    return outputs


def version(runtime: Runtime, testid: str) -> str:
    """What k6 calls its version, e.g. `v2.2.0`."""
    command = runtime.k6(["version"], {}, testid, None)
    said = subprocess.run(
        command.argv, env={**os.environ, **command.env}, capture_output=True, text=True, check=False
    )
    return next((word for word in said.stdout.split() if word.startswith("v")), "unknown")


def explain_exit(code: int, log: Path) -> str:
    """One line on a run that k6 did not finish, with the last thing that it said."""
    reason = _EXITS.get(code, "killed" if code < 0 else "unknown")
    return f"k6 ended with {code} ({reason}): {_last_word(_lines(log))} (see {log.name} of the run)"


def _lines(log: Path) -> list[str]:
    return log.read_text(errors="replace").splitlines()


def _last_word(lines: Sequence[str]) -> str:
    errors = [line for line in lines if "level=error" in line or "level=fatal" in line]
    said = (errors or [line for line in lines if line.strip()] or ["it said nothing"])[-1]
    message = _ABORT.search(said)
    return message[1] if message else said.strip()
