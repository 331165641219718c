"""The programs of the host runtime: built from pinned sources with the ordinary package clients,
installed from lock files, or found on this machine, where the lab brings none.

Each build is stamped with a digest of what it was made from, so that it is made once and made
again when its source, its pins or its compiler change. host/tools/tools.yml declares the tools.
"""

import filecmp
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict

from spikelab import paths
from spikelab.console import say, working
from spikelab.errors import LabError
from spikelab.stack.locks import alone

_IGNORED_FOLDERS = ("target", ".git", "__pycache__")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Release(_Strict):
    """How a Go module's version becomes the release that the program prints."""

    pattern: str
    format: str


class Version(_Strict):
    arguments: list[str]
    prints: str


class Tool(_Strict):
    """One tool as tools.yml declares it; its folder of host/tools/ has its name."""

    name: str
    module: str
    release: Release
    binaries: dict[str, str]
    tags: list[str]
    ldflags: str
    version: Version
    build_seconds: int

    @property
    def folder(self) -> Path:
        return paths.HOST_TOOLS / self.name

    @property
    def pinned_release(self) -> str:
        """The release that its go.mod pins."""
        go_mod = self.folder / "go.mod"
        text = go_mod.read_text(encoding="utf-8")
        pin = re.search(rf"^\s*(?:require )?{re.escape(self.module)} (v\S+)", text, re.MULTILINE)
        parts = re.match(self.release.pattern, pin[1]) if pin else None
        if parts is None:
            raise LabError(f"{paths.shown(go_mod)} pins no usable version of {self.module}")
        return self.release.format.format(*parts.groups())

    def prints_its_version(self, program: str) -> bool:
        """Whether a program on this machine is of the pinned release."""
        wanted = self.version.prints.format(release=self.pinned_release)
        return wanted in printed(program, *self.version.arguments)


def declared_tools() -> dict[str, Tool]:
    """Each tool by its name."""
    text = (paths.HOST_TOOLS / "tools.yml").read_text(encoding="utf-8")
    return {
        name: Tool.model_validate({"name": name, **tool})
        for name, tool in yaml.safe_load(text).items()
    }


@dataclass(frozen=True)
class Build:
    """One build: its command, where it runs, what it is made from and what it makes."""

    name: str
    about: str
    sources: Sequence[Path]
    outputs: Sequence[Path]
    command: Sequence[str]
    folder: Path
    needs: str
    env: Mapping[str, str] = field(default_factory=dict)
    tool: Tool | None = None  # a stock program, which may be on this machine already

    @property
    def stamp(self) -> Path:
        return paths.BUILD / f"{self.name}.stamp"

    def digest(self) -> str:
        """Changes when a source, the command or the compiler changes."""
        digest = hashlib.sha256(" ".join(self.command).encode())
        digest.update(_compiler_version(self.needs).encode())
        for path in _files(self.sources):
            digest.update(str(path.relative_to(paths.ROOT)).encode())
            digest.update(path.read_bytes())
        return digest.hexdigest()

    def current(self) -> bool:
        if not all(path.exists() for path in (*self.outputs, self.stamp)):
            return False
        # Without its compiler nothing better can be made: what is there has to do.
        return shutil.which(self.needs) is None or self.stamp.read_text() == self.digest()


def builds() -> list[Build]:
    """Every build of the host runtime, in the order they are made."""
    return [
        *map(_tool_build, declared_tools().values()),
        _own_go_build("sockets-exporter", "the sockets exporter", paths.SOCKETS_EXPORTER),
        _own_go_build("spikelab-init", "what makes the secrets", paths.SECRETS_PROGRAM),
        _target_build(),
        _archive_build(),
    ]


def ensure_built() -> None:
    """Makes what is missing or out of date, with progress. Raises LabError with the log's place."""
    with alone(paths.BUILD / "lock", "another ./lab command is building"):
        for build in builds():
            if not build.current() and not _taken_from_path(build):
                _make(build)


def target_jar() -> Path:
    return paths.BUILD / "spring-tomcat" / "spring-tomcat.jar"


def target_archive() -> Path:
    """Its loaded classes, which host/start-target looks for beside the jar."""
    return target_jar().with_suffix(".jsa")


def target_stamp() -> str:
    """`sha256:<hex>` of what the lab's own target was built from; empty before its first build."""
    stamp = _target_build().stamp
    return f"sha256:{stamp.read_text()}" if stamp.exists() else ""


def _make(build: Build) -> None:
    if shutil.which(build.needs) is None:
        raise LabError(
            f"'{build.needs}' is needed to build {build.name} and was not found on PATH: "
            "install it, or use Docker (./lab doctor)"
        )
    for folder in {path.parent for path in build.outputs} | {paths.BUILD, paths.LOGS}:
        folder.mkdir(parents=True, exist_ok=True)
    log = paths.LOGS / f"build-{build.name}.log"
    with working(f"building {build.about}"), log.open("w") as output:
        result = subprocess.run(
            build.command,
            cwd=build.folder,
            env={**os.environ, **build.env},
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    if result.returncode or not all(path.exists() for path in build.outputs):
        raise LabError(f"{build.name} could not be built: {_reason(log)} (see {paths.shown(log)})")
    build.stamp.write_text(build.digest())


def _reason(log: Path) -> str:
    """The first line that is marked as an error, else the last one."""
    said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in said if "error" in line.lower()]
    return (errors[:1] or said[-1:] or ["it said nothing"])[0].strip()


def _files(sources: Sequence[Path]) -> Iterable[Path]:
    for source in sources:
        if source.is_file():
            yield source
            continue
        for path in sorted(source.rglob("*")):
            inside = path.relative_to(source).parts
            if path.is_file() and not any(part in _IGNORED_FOLDERS for part in inside):
                yield path


def printed(*command: str) -> str:
    """What a command prints, errors included."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout + result.stderr


def _compiler_version(program: str) -> str:
    """What the compiler says of itself; its error text counts too, and is the build's to show."""
    return printed(program, "version" if program == "go" else "--version")


def _taken_from_path(build: Build) -> bool:
    """Links a tool's programs of exactly the pinned version that are on PATH already."""
    found = {output: shutil.which(output.name) for output in build.outputs}
    if not build.tool or not all(
        path and build.tool.prints_its_version(path) for path in found.values()
    ):
        return False
    paths.BIN.mkdir(parents=True, exist_ok=True)
    paths.BUILD.mkdir(parents=True, exist_ok=True)
    for output, path in found.items():
        output.unlink(missing_ok=True)
        output.symlink_to(str(path))
    say(f"{build.name}: taken from PATH")
    build.stamp.write_text(build.digest())
    return True


def _tool_build(tool: Tool) -> Build:
    release, minutes = tool.pinned_release, tool.build_seconds / 60
    flags = ["-tags", ",".join(tool.tags), "-ldflags", tool.ldflags.format(release=release)]
    return Build(
        name=tool.name,
        about=f"{tool.name} {release} (from nothing about {minutes:.0f} min)",
        sources=[tool.folder],
        outputs=[paths.BIN / program for program in tool.binaries],
        command=["go", "build", *flags, "-o", f"{paths.BIN}/", *tool.binaries.values()],
        folder=tool.folder,
        needs="go",
        tool=tool,
    )


def _own_go_build(name: str, about: str, folder: Path) -> Build:
    return Build(
        name=name,
        about=about,
        sources=[folder],
        outputs=[paths.BIN / name],
        command=["go", "build", "-o", str(paths.BIN / name), "."],
        folder=folder,
        needs="go",
        env={"CGO_ENABLED": "0"},
    )


def _target_build() -> Build:
    return Build(
        name="target",
        about="the target",
        sources=[paths.TARGET / "pom.xml", paths.TARGET / "target.yml", paths.TARGET / "src/main"],
        outputs=[target_jar()],
        command=[
            "mvn",
            "--batch-mode",
            "--quiet",
            f"-DbuildDirectory={target_jar().parent}",
            "-DskipTests",
            "package",
        ],
        folder=paths.TARGET,
        needs="mvn",
    )


def _archive_build() -> Build:
    home = os.environ.get("JAVA_HOME")
    # As host/start-target chooses it: an archive fits one Java only.
    java = f"{home}/bin/java" if home else "java"
    script = paths.ROOT / "host" / "make-archive.sh"
    return Build(
        name="target-archive",
        about="the archive of the target's classes",
        sources=[target_jar(), script],
        outputs=[target_archive()],
        command=[str(script), java, str(target_jar()), str(target_archive())],
        folder=target_jar().parent,
        needs=java,
        env={"TARGET_PORT": "0", "TARGET_MANAGEMENT_PORT": "0"},
    )


def ensure_packages(lock: Path, venv: Path, about: str) -> None:
    """Has exactly this lock file installed, in an environment that is made where there is none:
    with progress, and once for commands at the same time. Raises LabError."""
    if not _installed(lock, venv):
        with alone(paths.BUILD / lock.name, f"another ./lab command is installing {about}"):
            if not _installed(lock, venv):  # another command may just have done it
                with working(f"installing {about}"):
                    _install(lock, venv)


def _installed(lock: Path, venv: Path) -> bool:
    installed = venv / lock.name
    return installed.exists() and filecmp.cmp(lock, installed, shallow=False)


def _install(lock: Path, venv: Path) -> None:
    python = venv / "bin" / "python"
    if not python.exists():
        _call([sys.executable, "-m", "venv", str(venv)])
    options = ["--quiet", "--require-hashes", "--disable-pip-version-check"]
    # A lock file names all that is needed; what is imported is compiled then.
    options += ["--no-deps", "--no-compile"]
    _call([str(python), "-m", "pip", "install", *options, "-r", str(lock)])
    shutil.copyfile(lock, venv / lock.name)


def _call(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        said = [line for line in (result.stdout + result.stderr).splitlines() if line.strip()]
        raise LabError(f"packages could not be installed: {said[-1] if said else command[0]}")


def locust_program() -> Path:
    """`locust`, installed on first use. Raises LabError when it can't be."""
    ensure_packages(paths.REQUIREMENTS / "locust.lock", paths.LOCUST_VENV, "Locust")
    return paths.LOCUST_VENV / "bin" / "locust"


_DISTRIBUTION_HOME = Path("/usr/share/grafana")
GRAFANA_ADVICE = (
    "no Grafana found: unpack one and set GRAFANA_HOME to its folder, or use the docker runtime; "
    "everything else runs, and ./lab run --live shows k6's own dashboard"
)


def find_grafana() -> Path | None:
    """The home folder (with bin/, conf/, public/) from GRAFANA_HOME or of a grafana on PATH."""
    named = os.environ.get("GRAFANA_HOME")
    if named:
        return Path(named) if (Path(named) / "public").is_dir() else None
    for program in ("grafana", "grafana-server"):
        found = shutil.which(program)
        if found:
            for home in (Path(found).resolve().parent.parent, _DISTRIBUTION_HOME):
                if (home / "public").is_dir() and (home / "bin").is_dir():
                    return home
    return None


# As host/start-proxy looks: Debian keeps daemons out of a user's PATH.
_DAEMON_FOLDERS = ("/usr/sbin", "/usr/local/sbin")
_PROGRAMS = {"redis": ("redis-server", "valkey-server"), "proxy": ("haproxy",)}
ON_DEMAND_ADVICE = {"redis": "apt-get install redis-server", "proxy": "apt-get install haproxy"}


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
            f"({ON_DEMAND_ADVICE[component]}), or use the docker runtime"
        )
