"""Locust on the host runtime: its packages, pinned, in an environment of their own."""

import sys
from pathlib import Path

from spikelab import paths
from spikelab.console import working
from spikelab.locks import alone
from spikelab.packages import current, install

_LOCK = paths.REQUIREMENTS / "locust.lock"


def locust_program() -> Path:
    """`locust`, installed on first use. Raises LabError when it can't be."""
    if not current(_LOCK, paths.LOCUST_VENV):
        with alone(paths.BUILD / "locust.lock", "another ./lab command is installing Locust"):
            _install()
    return paths.LOCUST_VENV / "bin" / "locust"


def _install() -> None:
    if not current(_LOCK, paths.LOCUST_VENV):  # another command may just have done it
        with working("installing Locust"):
            install(_LOCK, paths.LOCUST_VENV, Path(sys.executable))
