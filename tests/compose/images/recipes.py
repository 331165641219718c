"""What each stand-in is made of: a Dockerfile of this folder, and programs of this machine."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spikelab import paths
from spikelab.errors import LabError
from spikelab.stack.programs import find_grafana

FOLDER = Path(__file__).parent
SUITE = "bookworm"
BASE = f"spikelab-stand-in-base:{SUITE}"
# What the whole system trusts: Debian's package keeps it here.
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_INFLUX = paths.BUILD / "influx"


@dataclass(frozen=True)
class Recipe:
    """One stand-in. `files`: place beside the Dockerfile → file or folder of this machine.
    `pins`: what says which version of them it is; with the Dockerfile it makes the digest.
    `version`: the command that prints its real version in the container. `prepare`: makes what is
    not on this machine yet."""

    name: str
    version: Sequence[str]
    files: Mapping[str, Path]
    pins: Sequence[str] = ()
    prepare: Callable[[], None] = lambda: None

    @property
    def dockerfile(self) -> Path:
        return FOLDER / f"{self.name}.Dockerfile"

    def digest(self) -> str:
        """Changes with the Dockerfile, the base, the small files and the pinned versions."""
        own = [path.read_bytes() for path in self.files.values() if path.parent == FOLDER]
        texts = [BASE, *self.version, *self.pins]
        parts = [self.dockerfile.read_bytes(), *own, *map(str.encode, texts)]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _prometheus() -> Recipe:
    programs = ("prometheus", "promtool")
    return Recipe(
        "prometheus",
        ["prometheus", "--version"],
        {name: paths.BIN / name for name in programs},
        [_pinned("prometheus")],
    )


def _influxdb() -> Recipe:
    return Recipe(
        "influxdb",
        ["influxd", "version"],
        {
            "influxd": paths.BIN / "influxd",
            "influx": _INFLUX,
            "influxdb-entrypoint.sh": FOLDER / "influxdb-entrypoint.sh",
        },
        [_pinned("influxdb")],
        _build_influx,
    )


def _k6() -> Recipe:
    return Recipe("k6", ["k6", "version"], {"k6": paths.BIN / "k6"}, [_pinned("k6")])


def _locust() -> Recipe:
    lock = paths.REQUIREMENTS / "locust.lock"
    return Recipe("locust", ["locust", "--version"], {"locust.lock": lock}, [lock.read_text()])


def _golang() -> Recipe:
    root = Path(_said("go", "env", "GOROOT"))
    parts = ("bin", "pkg", "src", "VERSION", "go.env")
    files = {f"go/{name}": root / name for name in parts if (root / name).exists()}
    return Recipe("golang", ["go", "version"], files, [_said("go", "version")])


def _jre() -> Recipe:
    jdk = _newest_jdk()
    launcher = "java-without-new-options.sh"
    return Recipe(
        "jre",
        ["java", "-version"],
        {"jdk": jdk, launcher: FOLDER / launcher},
        [(jdk / "release").read_text()],
    )


def _maven() -> Recipe:
    jdk = _newest_jdk()
    home = Path(_need("mvn", "maven")).resolve().parent.parent
    # Not its settings, which may hold passwords.
    parts = ("bin", "boot", "lib", "conf/logging")
    return Recipe(
        "maven",
        ["mvn", "--version"],
        {
            "jdk": jdk,
            **{f"maven/{name}": home / name for name in parts},
            "cacerts": Path("/etc/ssl/certs/java/cacerts"),
            "repository": Path.home() / ".m2" / "repository",
        },
        [
            (jdk / "release").read_text(),
            _said("mvn", "--version"),
            (paths.TARGET / "pom.xml").read_text(),
        ],
        _download_of_target,
    )


def _grafana() -> Recipe | None:
    home = find_grafana()
    if home is None:
        return None
    run = {"grafana-run.sh": FOLDER / "grafana-run.sh"}
    version = home / "VERSION"
    return Recipe(
        "grafana",
        ["sh", "-c", "grafana-server -v || grafana server -v"],
        run | {name: home / name for name in ("bin", "conf", "public")},
        [str(home), version.read_text() if version.exists() else ""],
    )


def _of_debian(name: str, *version: str) -> Callable[[], Recipe]:
    """Of a package that its Dockerfile installs."""
    script = FOLDER / f"{name}-entrypoint.sh"
    return lambda: Recipe(name, version, {script.name: script} if script.exists() else {})


# By the official image's repository. None: what it is made of is not on this machine.
RECIPES: Mapping[str, Callable[[], Recipe | None]] = {
    "busybox": _of_debian("busybox", "busybox"),
    "eclipse-temurin": _jre,
    "golang": _golang,
    "grafana/grafana": _grafana,
    "grafana/k6": _k6,
    "haproxy": _of_debian("haproxy", "haproxy", "-v"),
    "influxdb": _influxdb,
    "locustio/locust-otel": _locust,
    "maven": _maven,
    "prom/prometheus": _prometheus,
    "valkey/valkey": _of_debian("valkey", "valkey-server", "--version"),
}


def _build_influx() -> None:
    """InfluxDB's client, which the host runtime does not need, from the same module."""
    package = "github.com/influxdata/influxdb/cmd/influx"
    subprocess.run(
        ["go", "build", "-o", str(_INFLUX), package],
        cwd=paths.HOST_TOOLS / "influxdb",
        env={**os.environ, "CGO_ENABLED": "0"},
        check=True,
    )


def _download_of_target() -> None:
    """All that the target's image is built from, by the settings of this machine's Maven."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                *("mvn", "--batch-mode", "--quiet", "-Dmaven.test.skip=true"),
                *(f"-DbuildDirectory={folder}", "package"),
            ],
            cwd=paths.TARGET,
            check=True,
        )


def _newest_jdk() -> Path:
    """Of those that Debian and others put into /usr/lib/jvm, and the one on PATH."""
    on_path = Path(_need("javac", "openjdk-17-jdk-headless")).resolve().parent.parent
    homes = {on_path, *(path.resolve() for path in Path("/usr/lib/jvm").glob("*"))}
    return max((home for home in homes if (home / "release").exists()), key=_java_version)


def _java_version(home: Path) -> tuple[int, ...]:
    found = re.search(r'JAVA_VERSION="([\d.]+)', (home / "release").read_text())
    return tuple(map(int, found[1].split("."))) if found else ()


def _pinned(tool: str) -> str:
    return (paths.HOST_TOOLS / tool / "go.mod").read_text()


def _need(program: str, package: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise LabError(f"{program} is needed for a stand-in image: apt-get install {package}")
    return found


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
