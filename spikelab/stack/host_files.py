"""What the host runtime's programs read, written below .lab/: Prometheus' folder, the secrets of
this installation, and what the target is started with."""

import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from spikelab import paths
from spikelab.errors import LabError
from spikelab.settings import StackSettings

SECRETS = paths.LAB / "data" / "secrets"
# A folder that holds the certificate authority alone, as SSL_CERT_DIR wants it.
CA_FOLDER = SECRETS / "ca"
_PROMETHEUS = paths.STATE / "prometheus"
_SHARED = paths.ROOT / "prometheus"
_TARGET_ENV = paths.STATE / "target.env"


def write_prometheus_folder() -> None:
    """Links prometheus.yml and rules/, with an empty targets/ beside them."""
    shutil.rmtree(_PROMETHEUS, ignore_errors=True)
    (_PROMETHEUS / "targets").mkdir(parents=True)
    for shared in ("prometheus.yml", "rules"):
        (_PROMETHEUS / shared).symlink_to(_SHARED / shared)


def write_scrape_targets(settings: StackSettings, components: Sequence[str]) -> None:
    """Rewrites the docker runtime's targets/ for these; a running Prometheus reads them at once."""
    for source in sorted((_SHARED / "targets" / "docker").glob("*.yml")):
        groups = [
            _on_host(group, settings)
            for group in yaml.safe_load(source.read_text(encoding="utf-8"))
            if group["labels"].get("component", "target") in components
        ]
        (_PROMETHEUS / "targets" / source.name).write_text(yaml.safe_dump(groups), encoding="utf-8")


def _on_host(group: dict[str, Any], settings: StackSettings) -> dict[str, Any]:
    """The same group at this machine's addresses, found by the port that the service has inside."""
    ports = [int(address.rpartition(":")[2]) for address in group["targets"]]
    # Once each: replicas are a matter of containers.
    names = dict.fromkeys(settings.port_name_by_default(port) for port in ports)
    return {**group, "targets": [f"{settings.bind}:{settings.port(name)}" for name in names]}


def make_secrets() -> None:
    """Makes what is missing, and what soon ends, by the program that does so in Compose
    (services/secrets). Raises LabError with the program's own line."""
    SECRETS.mkdir(mode=0o700, parents=True, exist_ok=True)
    result = subprocess.run(
        [str(paths.BIN / "spikelab-init"), "--folder", str(SECRETS)],
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        said = result.stderr.strip().splitlines()
        raise LabError(f"no secrets: {said[-1] if said else result.returncode}")


def write_target_env(values: Mapping[str, object]) -> None:
    """Writes the variables that host/start-target reads at each start of the target."""
    lines = [f"{name}={shlex.quote(str(value))}" for name, value in values.items()]
    _TARGET_ENV.write_text("\n".join(lines) + "\n")


def read_target_env() -> dict[str, str]:
    """The variables of the target's last start; empty before the first."""
    if not _TARGET_ENV.exists():
        return {}
    pairs = (word.partition("=") for word in shlex.split(_TARGET_ENV.read_text()))
    return {name: value for name, _, value in pairs}
