"""Python packages from a lock file, installed with their hashes into an environment."""

import filecmp
import shutil
import subprocess
from pathlib import Path

from spikelab.errors import LabError


def current(lock: Path, venv: Path) -> bool:
    """Whether exactly this lock file was installed there."""
    installed = venv / lock.name
    return installed.exists() and filecmp.cmp(lock, installed, shallow=False)


def install(lock: Path, venv: Path, python: Path) -> None:
    """Installs a lock file, making the environment where there is none. Raises LabError."""
    own = venv / "bin" / "python"
    if not own.exists():
        _call([str(python), "-m", "venv", str(venv)])
    _call(
        [
            str(own),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--require-hashes",
            "--disable-pip-version-check",
            # A lock file names all that is needed; what is imported is compiled then.
            "--no-deps",
            "--no-compile",
            "-r",
            str(lock),
        ]
    )
    shutil.copyfile(lock, venv / lock.name)


def _call(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        said = [line for line in (result.stdout + result.stderr).splitlines() if line.strip()]
        raise LabError(f"packages could not be installed: {said[-1] if said else command[0]}")
