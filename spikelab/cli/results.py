"""How commands that run load end: links, the report, the exit code."""

import os
from collections.abc import Iterable

from spikelab import paths
from spikelab.console import out, warn
from spikelab.errors import EXIT_FAILED, EXIT_INCONCLUSIVE, EXIT_OK, EXIT_SLO_MISSED
from spikelab.experiments.state import FILE, ExperimentState
from spikelab.links import runs_url
from spikelab.record import RunRecord
from spikelab.runtime import Runtime


def exit_code(records: Iterable[RunRecord]) -> int:
    """The worst of these runs decides."""
    found = list(records)
    if not all(record.valid for record in found):
        return EXIT_FAILED
    verdicts = {record.verdict for record in found}
    if "fail" in verdicts:
        return EXIT_SLO_MISSED
    return EXIT_INCONCLUSIVE if "inconclusive" in verdicts else EXIT_OK


def say_experiment(runtime: Runtime, state: ExperimentState) -> None:
    """Where an experiment's runs and its state are."""
    if grafana := runtime.endpoints().grafana:
        link = runs_url(grafana, state.plan, state.started, state.ended)
        out.print(f"dashboard  {link}")
    out.print(f"experiment {paths.shown(state.folder / FILE)}")


def say_report(name: str) -> None:
    """Writes the report of a run or an experiment and says where it is. Its failure is a warning:
    what was measured is there without it. `LAB_REPORT=none` leaves it out."""
    asked = os.environ.get("LAB_REPORT")
    if asked == "none":
        return
    if asked:
        warn(f"LAB_REPORT={asked}: unknown, so there is a report: none leaves it out")
    try:
        # It takes a while to import, and draws.
        from spikelab.report import write_report  # noqa: PLC0415

        path = write_report(name)
    except Exception as error:
        warn(f"no report of {name}: {type(error).__name__}: {error}")
        return
    out.print(f"report     {paths.shown(path)}")
