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
    """The error as the user gets it: of what another start goes on with, also with which run."""
    if state.kind == "run" or not isinstance(error, LabError | OSError | KeyboardInterrupt):
        return error
    done = sum(cell.done for cell in state.cells)
    following = next((n for n, cell in enumerate(state.cells, 1) if not cell.done), done + 1)
    of = "" if state.kind == "capacity" else f" of {len(state.cells)}"
    kind = RunInterruptedError if isinstance(error, KeyboardInterrupt) else LabError
    if isinstance(error, LabError):
        kind = type(error)
    return kind(
        f"{reason_of(error)}; {done}{of} runs are done: the same command goes on with run "
        f"{following}{of}"
    )
