"""k6: the command line for a plan, what its exit codes mean, and its figures of the phases.

The figures come from k6's own end-of-test summary (`--summary-export`): times in milliseconds,
percentiles exactly, a sub-metric as `name{tag:value,…}`. k6/lib/attempt.js says what the metrics
that are not k6's own count, and prints samples of wrong answers on k6's console.
"""

import json
import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from spikelab import paths
from spikelab.drivers.base import PhaseSummary, Run, from_epoch_ms
from spikelab.drivers.process import ask, was_killed
from spikelab.errors import LabError
from spikelab.plans.model import DriverName, Phase
from spikelab.results.files import write_json
from spikelab.results.run import ERROR_CLASSES, Errors, Latency
from spikelab.settings import DATABASE
from spikelab.stack import environment
from spikelab.stack.base import DriverCommand
from spikelab.units import parse_whole_number

# k6's own default for its web dashboard.
DASHBOARD_PORT = parse_whole_number(os.environ.get(environment.DASHBOARD_PORT, "")) or 5665
DASHBOARD_URL = f"http://127.0.0.1:{DASHBOARD_PORT}"
# What a script's own abort looks like in k6's log: only the middle is for people.
_ABORT = re.compile(r"test aborted: (.*?) at \w+ \(")
# In the run's folder, in place of the user's own: what k6 has no argument for.
_CONFIG = "k6-config.json"
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

    def command(self, run: Run) -> DriverCommand:
        runtime = run.runtime
        write_json(paths.RESULTS / run.testid / _CONFIG, {"hosts": addresses_with_ports(run.hosts)})
        arguments = [
            "run",
            "--config",
            runtime.driver_path(_CONFIG, run.testid),
            "--tag",
            f"testid={run.testid}",
            "--summary-export",
            runtime.driver_path(self.summary_file, run.testid),
            *(word for output in _outputs(run) for word in ("--out", output)),
            runtime.driver_script(self.name, run.plan.script_of(self.name)),
        ]
        env = {
            "LAB_PLAN": runtime.driver_path("plan.json", run.testid),
            "K6_FEATURES": "native-histograms",
            "K6_PROMETHEUS_RW_SERVER_URL": f"{run.driver_endpoints.prometheus}/api/v1/write",
            "K6_PROMETHEUS_RW_PUSH_INTERVAL": "1s",
            "K6_PROMETHEUS_RW_STALE_MARKERS": "true",
            **({environment.DASHBOARD_PORT: str(DASHBOARD_PORT)} if run.live else {}),
            "K6_NO_USAGE_REPORT": "true",
            # Users cost memory, not CPU: collect garbage early (k6/README.md has the figures).
            **({"GOGC": os.environ.get("GOGC", "10")} if run.plan.spike else {}),
        }
        port = DASHBOARD_PORT if run.live else None
        return runtime.driver(self.name, arguments, env, run.testid, port, run.cores)

    def version(self, run: Run) -> str:
        said = ask(run.runtime.driver(self.name, ["version"], {}, run.testid))
        return next((word for word in said.split() if word.startswith("v")), "unknown")

    def why_failed(self, code: int, log: Path) -> str | None:
        if code in _VALID_EXITS:
            return None
        reason = _EXITS.get(code, "killed" if was_killed(code) else "unknown")
        said = _last_word(log.read_text(errors="replace").splitlines())
        return f"k6 ended with {code} ({reason}): {said} (see {log.name} of the run)"

    def remove_secrets(self, folder: Path) -> None:
        remove_requests(folder / self.summary_file)

    def read_summary(self, folder: Path, phases: Sequence[Phase]) -> list[PhaseSummary]:
        starts = {phase.name: phase.start_seconds for phase in phases}
        found = read_summary(folder / self.summary_file, starts)
        bodies = read_bodies(folder / f"{self.name}.log")
        for phase in found:
            phase.errors.bodies = bodies.get(phase.name, [])
        return found


def addresses_with_ports(hosts: Mapping[str, str]) -> dict[str, str]:
    """`name:port` → address:port, as k6 wants both."""
    ports = {name: name.rpartition(":")[2] for name in hosts}
    return {
        name: f"[{address}]:{ports[name]}" if ":" in address else f"{address}:{ports[name]}"
        for name, address in hosts.items()
    }


def _outputs(run: Run) -> list[str]:
    outputs = []
    if "prometheus" in run.sinks:
        outputs.append("experimental-prometheus-rw")
    if "influxdb" in run.sinks:
        outputs.append(f"influxdb={run.driver_endpoints.influxdb}/{DATABASE}")
    if run.live:
        outputs.append("web-dashboard")
    return outputs


def _last_word(lines: Sequence[str]) -> str:
    errors = [line for line in lines if "level=error" in line or "level=fatal" in line]
    said = (errors or [line for line in lines if line.strip()] or ["it said nothing"])[-1]
    message = _ABORT.search(said)
    return message[1] if message else said.strip()


_MOST_A_PHASE = 5
_LONGEST = 200
_LINE = re.compile(r'msg="spikelab-body (?P<json>(?:[^"\\]|\\.)*)"')


def read_bodies(log: Path) -> dict[str, list[str]]:
    """Phase to `status: beginning of the body`, different ones, from a log of k6."""
    found: dict[str, list[str]] = defaultdict(list)
    with log.open(errors="replace") as lines:
        for line in lines:
            match = _LINE.search(line)
            if not match:
                continue
            try:
                sample = json.loads(json.loads(f'"{match["json"]}"'))
                text = f"{sample['status']}: {str(sample['body'])[:_LONGEST]}"
                samples = found[str(sample["phase"])]
            except (ValueError, KeyError, TypeError):
                continue  # cut off, or a line of the user's own that looks alike
            if text not in samples and len(samples) < _MOST_A_PHASE:
                samples.append(text)
    return found


_PERCENTILES = {
    "p50": "med",
    "p90": "p(90)",
    "p95": "p(95)",
    "p99": "p(99)",
    "p99_9": "p(99.9)",
    "max": "max",
}
# A failed attempt counts as 1e10 ms in latency_with_failures, and k6 interpolates: a percentile
# between that and the slowest answer is infinite as well. No request may take an hour (plan.py).
_INFINITE_MS = 3.6e6

Metrics = dict[str, dict[str, Any]]


def read_summary(path: Path, phases: Mapping[str, float]) -> list[PhaseSummary]:
    """The figures of the phases, given with their start in seconds.

    Raises LabError when k6 left no summary or a script without ours.
    """
    try:
        document = json.loads(path.read_bytes())
        epoch_ms = float(document["setup_data"]["started_ms"])
        return [
            _phase(document["metrics"], name, epoch_ms, start * 1000)
            for name, start in phases.items()
        ]
    except FileNotFoundError as error:
        raise LabError("k6 ended without a summary") from error
    except (ValueError, KeyError, TypeError) as error:
        raise LabError(f"k6's summary {path.name} lacks what the lab needs: {error}") from error


def remove_requests(path: Path) -> None:
    """Takes out what setup() handed to the users: their headers may hold a token."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        document = json.loads(path.read_bytes())
        if document["setup_data"].pop("requests", None):
            write_json(path, document)


def _phase(metrics: Metrics, name: str, epoch_ms: float, begun_ms: float) -> PhaseSummary:
    def of(metric: str, tags: str = "") -> dict[str, Any]:
        return metrics[f"{metric}{{scenario:{name}{tags}}}"]

    requests = int(of("attempts")["count"])
    # A gauge that nobody has set reads 0.
    nothing = {"min": begun_ms, "max": begun_ms}
    started, ended = (of("attempt_started"), of("attempt_ended")) if requests else (nothing,) * 2
    good = int(of("success")["passes"])
    answers = of("http_req_duration", ",expected_response:true")
    errors = _errors(requests - good, {c: of("failures", f",class:{c}") for c in ERROR_CLASSES})
    answered = int(of("failures", ",answered:true")["count"])
    return PhaseSummary(
        name=name,
        begun=from_epoch_ms(epoch_ms + begun_ms),
        started=from_epoch_ms(epoch_ms + started["min"]),
        ended=from_epoch_ms(epoch_ms + max(ended["max"], started["max"])),
        requests=requests,
        completed=good + errors.http_4xx + errors.http_5xx + answered,
        failures=requests - good,
        dropped=int(of("dropped_iterations")["count"]),
        errors=errors,
        slow=_slow(metrics, name),
        late_answers=_late_answers(metrics, name),
        latency_seconds=_latency(answers),
        latency_mean_seconds=answers["avg"] / 1000 if answers["count"] else None,
        latency_with_failures_seconds=_latency(of("latency_with_failures")),
        start_spread_seconds=(started["max"] - started["min"]) / 1000,
        response_bytes_mean=of("answer_bytes")["avg"] if of("answer_bytes")["count"] else None,
    )


def _errors(failures: int, by_class: Metrics) -> Errors:
    """An attempt that was cut off before it could be counted is a failure of no known class."""
    counts = {name: int(metric["count"]) for name, metric in by_class.items()}
    counts["other"] += failures - sum(counts.values())
    return Errors.model_validate(counts)


def _slow(metrics: Metrics, name: str) -> dict[str, int]:
    prefix = f"slow{{scenario:{name},objective:"
    return {
        key.removeprefix(prefix).removesuffix("}"): int(metric["count"])
        for key, metric in metrics.items()
        if key.startswith(prefix)
    }


def _late_answers(metrics: Metrics, name: str) -> int | None:
    metric = metrics.get(f"late_answers{{scenario:{name}}}")
    return int(metric["count"]) if metric else None


def _latency(trend: dict[str, Any]) -> Latency:
    if not trend["count"]:
        return Latency()
    values = {key: float(trend[name]) for key, name in _PERCENTILES.items()}
    return Latency.model_validate(
        {key: None if ms >= _INFINITE_MS else round(ms / 1000, 9) for key, ms in values.items()}
    )
