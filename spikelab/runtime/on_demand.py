"""Finding the programs of what is started on demand: the lab builds none of them."""

import os
import shutil

from spikelab.errors import LabError

# As host/start-proxy looks: Debian keeps daemons out of a user's PATH.
_DAEMON_FOLDERS = ("/usr/sbin", "/usr/local/sbin")
_PROGRAMS = {"redis": ("redis-server", "valkey-server"), "proxy": ("haproxy",)}
ADVICE = {"redis": "apt-get install redis-server", "proxy": "apt-get install haproxy"}


def find_program(component: str) -> str | None:
    """The component's program on this machine."""
    folders = os.pathsep.join((os.environ.get("PATH", os.defpath), *_DAEMON_FOLDERS))
    for program in _PROGRAMS[component]:
        if found := shutil.which(program, path=folders):
            return found
    return None


def require_program(component: str) -> None:
    """Raises LabError saying what is missing and how to get it."""
    if find_program(component) is None:
        raise LabError(
            f"{component} needs {_PROGRAMS[component][0]}, which is not on PATH: install it "
            f"({ADVICE[component]}), or use the docker runtime"
        )
