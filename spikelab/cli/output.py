"""How commands that run load end: links, the report, the exit code."""

# - `--json FILE`: the result for a program to read, in a file, or printed where FILE is `-`.
# - Deep links into Grafana.
import os
import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from spikelab import console, paths
from spikelab.console import out, warn
from spikelab.errors import EXIT_FAILED, EXIT_INCONCLUSIVE, EXIT_OK, EXIT_SLO_MISSED, UsageError
from spikelab.results.experiment import FILE, ExperimentState
from spikelab.results.run import RunRecord, json_text, write_json
from spikelab.stack.base import Runtime


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
        from spikelab.report.formats import write_report  # noqa: PLC0415

        path = write_report(name)
    except Exception as error:
        warn(f"no report of {name}: {type(error).__name__}: {error}")
        return
    out.print(f"report     {paths.shown(path)}")


_PRINTED = Path("-")


def prepare(json_file: Path | None) -> None:
    """Before anything starts: the result can be written there. Raises UsageError.

    Where it is to be printed, standard output is left to it alone.
    """
    if json_file is None:
        return
    if json_file == _PRINTED:
        console.answer_on_stderr()
        return
    folder = json_file.resolve().parent
    if not json_file.name or json_file.is_dir():
        raise UsageError(f"--json {json_file}: this is a folder, not a file")
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(f"--json {json_file}: there is no folder {folder} that can be written to")


def write_result(json_file: Path, result: object) -> None:
    """Raises OSError."""
    if json_file == _PRINTED:
        sys.stdout.write(json_text(result))
        sys.stdout.flush()
    else:
        write_json(json_file, result)


def write_or_warn(json_file: Path, result: object) -> None:
    """Of a run: that it cannot be written does not change what was measured."""
    try:
        write_result(json_file, result)
    except OSError as error:
        console.warn(f"--json {json_file}: {error.strerror}")


# Room on both sides, so that the first and last moments are not cut off.
_MARGIN_MS = 2000


def dashboard_url(grafana: str, record: RunRecord) -> str:
    """The dashboard on exactly the run's time range and testid."""
    shown = _range(record.started, record.ended)
    return f"{grafana}/d/load-test?{shown}&var-testid={record.testid}"


def runs_url(grafana: str, plan: str, started: datetime, ended: datetime | None) -> str:
    """The list of a plan's runs of that time."""
    return f"{grafana}/d/runs?{_range(started, ended)}&var-plan={plan}"


def _range(started: datetime, ended: datetime | None) -> str:
    end = "now" if ended is None else str(int(ended.timestamp() * 1000) + _MARGIN_MS)
    return f"from={int(started.timestamp() * 1000) - _MARGIN_MS}&to={end}"
