"""k6: the command line for a plan, what its exit codes mean, and its figures of the phases.

The figures come from k6's own end-of-test summary, which k6/lib/summary.js writes: times in
milliseconds, exact at each of its ranks, a sub-metric as `name{tag:value,…}`. k6/lib/attempt.js and
load.js say what the metrics that are not k6's own count, and print samples of wrong answers on k6's
console.
"""

import json
import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from spikelab import paths
from spikelab.drivers.base import PhaseSummary, Run, from_epoch_ms
from spikelab.drivers.process import ask, was_killed
from spikelab.errors import LabError
from spikelab.plans.model import DriverName, Phase
from spikelab.results.files import write_json
from spikelab.results.run import ERROR_CLASSES, Errors, Latency, LatencyParts, Lateness
from spikelab.settings import DATABASE
from spikelab.stack import environment
from spikelab.stack.base import DriverCommand
from spikelab.statistics.distribution import Distribution
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

Metrics = dict[str, dict[str, Any]]


def read_summary(path: Path, phases: Mapping[str, float]) -> list[PhaseSummary]:
    """The figures of the phases, given with their start in seconds.

    Raises LabError when k6 left no summary or a script without ours.
    """
    try:
        document = json.loads(path.read_bytes())
        summary = _Summary(document["metrics"], document["ranks"])
        epoch_ms = float(document["started_ms"])
        return [_phase(summary, name, epoch_ms, start * 1000) for name, start in phases.items()]
    except FileNotFoundError as error:
        raise LabError("k6 ended without a summary") from error
    except (ValueError, KeyError, TypeError) as error:
        raise LabError(f"k6's summary {path.name} lacks what the lab needs: {error}") from error


@dataclass(frozen=True)
class _Summary:
    metrics: Metrics
    ranks: Sequence[float]

    def of(self, phase: str, metric: str, tags: str = "") -> dict[str, Any]:
        return self.metrics[f"{metric}{{scenario:{phase}{tags}}}"]

    def answers(self, phase: str, part: str) -> dict[str, Any]:
        """k6's own times of good answers."""
        return self.of(phase, f"http_req_{part}", ",expected_response:true")

    def count(self, phase: str, metric: str, tags: str = "") -> int:
        return int(self.of(phase, metric, tags)["count"])

    def optional(self, phase: str, metric: str) -> dict[str, Any] | None:
        """What not every kind of phase has."""
        return self.metrics.get(f"{metric}{{scenario:{phase}}}")

    def distribution(self, times: dict[str, Any]) -> Distribution:
        count = int(times["count"])
        if not count:
            return Distribution()
        # Interpolated between the same two values, a rank may come out a rounding below the last.
        seconds = accumulate((ms / 1000 for ms in times["ranked"]), max)
        return Distribution(count, tuple(self.ranks), tuple(seconds))


def _phase(summary: _Summary, name: str, epoch_ms: float, begun_ms: float) -> PhaseSummary:
    requests = summary.count(name, "attempts")
    # A gauge that nobody has set reads 0.
    nothing = {"min": begun_ms, "max": begun_ms}
    started = summary.of(name, "attempt_started") if requests else nothing
    ended = summary.of(name, "attempt_ended")
    # Of the failures: what failed passes.
    good = int(summary.of(name, "http_req_failed")["fails"])
    errors = _errors(requests - good, summary, name)
    answered = summary.count(name, "failures", ",answered:true")
    completed = good + errors.http_4xx + errors.http_5xx + answered
    after_end = summary.optional(name, "answers_after_end")
    dropped = summary.count(name, "dropped_iterations")
    # k6 numbers on after a drop as if nothing had been due: due times are known without one.
    scheduled = summary.optional(name, "response_time_due")
    times = summary.of(name, "response_time") if scheduled is None or dropped else scheduled
    sizes = summary.of(name, "answer_bytes")
    return PhaseSummary(
        name=name,
        begun=from_epoch_ms(epoch_ms + begun_ms),
        started=from_epoch_ms(epoch_ms + started["min"]),
        ended=from_epoch_ms(epoch_ms + max(ended["max"], started["max"])),
        requests=requests,
        completed=completed,
        completed_in_window=None if after_end is None else completed - int(after_end["count"]),
        failures=requests - good,
        dropped=dropped,
        errors=errors,
        slow=_slow(summary.metrics, name, "due" if times is scheduled else "start"),
        late_answers=_late_answers(summary, name),
        latency=summary.distribution(times),
        latency_mean_seconds=times["avg"] / 1000 if times["count"] else None,
        latency_parts_seconds=_parts(summary, name, times, known=scheduled is None or not dropped),
        http_req_duration_seconds=_latency(summary.answers(name, "duration")),
        lateness=_lateness(summary, name),
        start_spread_seconds=(started["max"] - started["min"]) / 1000,
        response_bytes_mean=sizes["avg"] if sizes["count"] else None,
    )


def _parts(summary: _Summary, name: str, times: dict[str, Any], known: bool) -> LatencyParts | None:
    """Means of good answers. `known`: so is when each was due."""
    if not times["count"]:
        return None

    def mean(part: str) -> float:
        return float(summary.answers(name, part)["avg"])

    blocked, duration = mean("blocked"), mean("duration")
    connecting, tls = mean("connecting"), mean("tls_handshaking")
    sending, waiting = mean("sending"), mean("waiting")
    parts_ms = {
        "lateness": times["avg"] - blocked - duration if known else None,
        "waiting_for_connection": blocked - connecting - tls,
        "connecting": connecting,
        "tls": tls,
        "sending": sending,
        "waiting": waiting,
        "receiving": duration - sending - waiting,
    }
    # A rounding below 0 is 0.
    seconds = {part: None if ms is None else max(0.0, ms / 1000) for part, ms in parts_ms.items()}
    return LatencyParts.model_validate(seconds)


def _lateness(summary: _Summary, name: str) -> Lateness | None:
    """By k6's own clock, looked at each 50 ms of the phase (`watch` in k6/lib/load.js)."""
    ticks = summary.optional(name, "driver_lateness")
    if not ticks or not ticks["count"]:
        return None
    return Lateness(p50=ticks["med"] / 1000, p99=ticks["p(99)"] / 1000, max=ticks["max"] / 1000)


def _errors(failures: int, summary: _Summary, name: str) -> Errors:
    """An attempt that was cut off before it could be counted is a failure of no known class."""
    counts = {each: summary.count(name, "failures", f",class:{each}") for each in ERROR_CLASSES}
    counts["other"] += failures - sum(counts.values())
    return Errors.model_validate(counts)


def _slow(metrics: Metrics, name: str, since: str) -> dict[str, int]:
    """By objective, counted since the moment when a request was due, or its start."""
    prefix, suffix = f"slow{{scenario:{name},objective:", f",since:{since}}}"
    return {
        key.removeprefix(prefix).removesuffix(suffix): int(metric["count"])
        for key, metric in metrics.items()
        if key.startswith(prefix) and key.endswith(suffix)
    }


def _late_answers(summary: _Summary, name: str) -> int | None:
    metric = summary.optional(name, "late_answers")
    return int(metric["count"]) if metric else None


def _latency(trend: dict[str, Any]) -> Latency:
    if not trend["count"]:
        return Latency()
    values = {key: round(trend[name] / 1000, 9) for key, name in _PERCENTILES.items()}
    return Latency.model_validate(values)
