"""An experiment that ends before all of its runs are done: why, in one line, and what goes on."""

import shutil

from spikelab import paths
from spikelab.errors import LabError, RunInterruptedError
from spikelab.experiments.state import ExperimentState

# With less the disk counts as full: it is, for whatever is to be written next.
_LEAST_FREE_BYTES = 1_000_000


def reason_of(error: BaseException) -> str:
    """What stopped it. A full disk shows in many ways, and is named for what it is."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, RunInterruptedError):
        return str(error)
    if shutil.disk_usage(paths.RESULTS).free < _LEAST_FREE_BYTES:
        return f"the disk of {paths.shown(paths.RESULTS)} is full: make room"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or paths.shown(paths.RESULTS)}: {error.strerror}"
    return str(error) or type(error).__name__


def told(state: ExperimentState, error: BaseException) -> BaseException:
    """The error as the user gets it: of what another start goes on with, also with which run.

    A search alone knows its next step, and a step in which the target died is no valid run.
    """
    if state.kind == "run" or not isinstance(error, LabError | OSError | KeyboardInterrupt):
        return error
    kind = RunInterruptedError if isinstance(error, KeyboardInterrupt) else LabError
    if isinstance(error, LabError):
        kind = type(error)
    return kind(f"{reason_of(error)}; {_what_comes(state)}")


def _what_comes(state: ExperimentState) -> str:
    if state.kind == "capacity":
        return "its steps are kept: the same command goes on"
    runs, done = len(state.cells), sum(cell.done for cell in state.cells)
    following = next((n for n, cell in enumerate(state.cells, 1) if not cell.done), None)
    if following is None:
        return f"all {runs} runs are done: the same command gives the answer"
    return (
        f"{done} of {runs} runs are done: the same command goes on with run {following} of {runs}"
    )
