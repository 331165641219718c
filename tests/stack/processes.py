"""The processes of a lab on the host runtime, and what can be done to them."""

import contextlib
import os
import time
from pathlib import Path

import psutil

from tests.support.lab import Lab, wait_until


def process_of(lab: Lab, name: str) -> psutil.Process:
    """The one process of this lab whose program has this name."""
    found = [psutil.Process(pid) for pid in lab.processes()]
    return next(each for each in found if program_of(each) == name)


def program_of(process: psutil.Process) -> str:
    try:
        return Path((process.cmdline() or [""])[0]).name
    except psutil.Error:
        return ""


def freeze(lab: Lab, name: str, seconds: float) -> None:
    time.sleep(1)  # the phase before has its last answers
    process = process_of(lab, name)
    process.suspend()
    time.sleep(seconds)
    process.resume()


def kill_and_hold(lab: Lab, seconds: float) -> None:
    """Kills InfluxDB, and holds up the one that supervisord starts, before it listens."""
    killed = process_of(lab, "influxd")
    killed.kill()
    wait_until(lambda: _others(lab, killed), 30, "supervisord starts InfluxDB again")
    new = _others(lab, killed)[0]
    new.suspend()
    try:
        time.sleep(seconds)
    finally:
        new.resume()


def _others(lab: Lab, killed: psutil.Process) -> list[psutil.Process]:
    """InfluxDB's processes but the killed one."""
    found = [psutil.Process(pid) for pid in lab.processes() if pid != killed.pid]
    return [each for each in found if program_of(each) == "influxd"]


def give_way(process: psutil.Process) -> None:
    """The lowest priority for its threads, and for its session where the kernel groups by it."""
    for thread in process.threads():
        os.setpriority(os.PRIO_PROCESS, thread.id, 19)
    with contextlib.suppress(OSError):
        Path(f"/proc/{process.pid}/autogroup").write_text("19")
