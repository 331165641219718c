"""Programs of a lab whose supervisord died: nobody would stop or restart them any more."""

from contextlib import suppress

import psutil

from spikelab import paths

_PATIENCE_SECONDS = 5


def orphans() -> list[psutil.Process]:
    """This lab's processes, found by the state folder in the environment they inherited."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("LAB_STATE") == str(paths.STATE):
                found.append(process)
    return found


def stop(processes: list[psutil.Process]) -> None:
    """Ends them, by force where asking does not help."""
    for process in processes:
        with suppress(psutil.Error):
            process.terminate()
    _, left = psutil.wait_procs(processes, _PATIENCE_SECONDS)
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, _PATIENCE_SECONDS)
