"""Locust: the command line for a plan, and its summary (locust/lib/summary.py)."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spikelab.drivers.base import PhaseSummary, Run, from_epoch_ms
from spikelab.drivers.process import ask, was_killed
from spikelab.errors import LabError
from spikelab.plans.model import DriverName, Phase
from spikelab.results.run import Errors, LatencyParts, Lateness
from spikelab.stack.base import DriverCommand
from spikelab.statistics.distribution import Distribution

# 99: an objective was missed, which is a valid result, as k6's.
_VALID_EXITS = (0, 99)


class Locust:
    """See `Driver`."""

    name: DriverName = "locust"
    summary_file = "locust-summary.json"

    def command(self, run: Run) -> DriverCommand:
        runtime = run.runtime
        arguments = [
            "--locustfile",
            runtime.driver_script(self.name, run.plan.script_of(self.name)),
            "--host",
            run.url,
            "--headless",
            "--only-summary",
            "--otel",
        ]
        env = {
            "LAB_PLAN": runtime.driver_path("plan.json", run.testid),
            "PROMETHEUS_URL": run.driver_endpoints.prometheus,
            # The lab finds the run by these, whatever the user's own shell has set.
            "OTEL_RESOURCE_ATTRIBUTES": f"testid={run.testid},driver={self.name}",
        }
        return runtime.driver(self.name, arguments, env, run.testid, cores=run.cores)

    def version(self, run: Run) -> str:
        said = ask(run.runtime.driver(self.name, ["--version"], {}, run.testid)).split()
        return f"v{said[1]}" if said[:1] == ["locust"] else "unknown"

    def why_failed(self, code: int, log: Path) -> str | None:
        if code in _VALID_EXITS:
            return None
        said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        wrong = [line for line in said if "ERROR" in line or "CRITICAL" in line]
        last = (wrong or said or ["it said nothing"])[-1].strip()
        killed = " (killed)" if was_killed(code) else ""
        return f"Locust ended with {code}{killed}: {last} (see {log.name} of the run)"

    def read_summary(self, folder: Path, phases: Sequence[Phase]) -> list[PhaseSummary]:
        path = folder / self.summary_file
        try:
            found = {phase["name"]: phase for phase in json.loads(path.read_bytes())["phases"]}
            return [_phase(found[phase.name]) for phase in phases]
        except FileNotFoundError as error:
            raise LabError("Locust ended without a summary") from error
        except (ValueError, KeyError, TypeError) as error:
            raise LabError(f"Locust's {path.name} lacks what the lab needs: {error}") from error


def _phase(data: dict[str, Any]) -> PhaseSummary:
    begun = from_epoch_ms(data["started_ms"])
    nothing = data["started"] is None
    parts, lateness = data["latency_parts_seconds"], data["lateness"]
    return PhaseSummary(
        name=data["name"],
        begun=begun,
        started=begun if nothing else from_epoch_ms(data["started"]),
        ended=begun if nothing else from_epoch_ms(data["ended"]),
        requests=data["requests"],
        completed=data["completed"],
        completed_in_window=data["completed_in_window"],
        failures=data["failures"],
        dropped=data["dropped"],
        errors=Errors.model_validate({**data["errors"], "bodies": data["bodies"]}),
        slow=data["slow"],
        late_answers=data["late_answers"],
        latency=Distribution(**data["latency"]),
        latency_mean_seconds=data["latency_mean_seconds"],
        latency_parts_seconds=parts and LatencyParts(**parts),
        lateness=lateness and Lateness(**lateness),
        start_spread_seconds=data["start_spread_seconds"],
        response_bytes_mean=data["response_bytes_mean"],
    )
