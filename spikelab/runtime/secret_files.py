"""The secrets of this installation on the host runtime, made by the program that makes them in
compose as well (init/)."""

import shutil
import subprocess

from spikelab import paths
from spikelab.errors import LabError

FOLDER = paths.LAB / "data" / "secrets"
# A folder that holds the certificate authority alone, as SSL_CERT_DIR wants it.
CA_FOLDER = FOLDER / "ca"
PRIVATE_KEY = FOLDER / "authz" / "private-key.pem"
PUBLIC_KEY = FOLDER / "authz" / "public-key.pem"
_ADMIN_PASSWORD = FOLDER / "grafana" / "admin-password"
_EARLIER_ADMIN_PASSWORD = paths.LAB / "data" / "grafana" / "admin-password"


def make_secrets() -> None:
    """Makes what is missing, and what soon ends. Raises LabError with the program's own line."""
    FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
    _keep_earlier_password()
    result = subprocess.run(
        [str(paths.BIN / "spikelab-init"), "--folder", str(FOLDER)],
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        said = result.stderr.strip().splitlines()
        raise LabError(f"no secrets: {said[-1] if said else result.returncode}")


def _keep_earlier_password() -> None:
    # Grafana reads it only when it makes its database.
    if _EARLIER_ADMIN_PASSWORD.exists() and not _ADMIN_PASSWORD.exists():
        _ADMIN_PASSWORD.parent.mkdir(exist_ok=True)
        shutil.move(_EARLIER_ADMIN_PASSWORD, _ADMIN_PASSWORD)
