"""The images that the stack needs: here already, pulled, or stand-ins that are built.

A stand-in has the official image's user, paths and entry point, and a label that says what it is:
`./lab` does not count it as the image. Its name is one of its own, which a stack is told by the
variables of compose/.env; what a Dockerfile starts from is called as the Dockerfile calls it.
"""

import io
import json
import os
import re
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import yaml

from spikelab import paths
from spikelab.errors import LabError
from spikelab.stack.engine import STAND_IN_LABEL, compose_command, has_image, inspected, succeeds
from spikelab.stack.locks import alone
from spikelab.stack.programs import ensure_built
from tests.compose.images.recipes import BASE, CERTIFICATES, RECIPES, SUITE, Recipe

_VERSION_LABEL = f"{STAND_IN_LABEL}.version"
_FOLDER = "spikelab-stand-in"
_ANSWER_SECONDS = 30
_AT_ONCE = 4


@dataclass(frozen=True)
class Images:
    """`grafana`: whether there is an image of it. `stand_ins`: name and tag → its real version.
    `settings`: variable of compose/.env → the stand-in that takes the image's place. `seconds`:
    what building took, by what was built."""

    grafana: bool
    stand_ins: Mapping[str, str]
    settings: Mapping[str, str]
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class _Image:
    """One that is needed. `variable`: of compose/.env, which can name another one. `recipe`: None
    where what a stand-in is made of is not on this machine."""

    reference: str
    variable: str | None
    recipe: Recipe | None

    @property
    def stand_in(self) -> str:
        """Its stand-in's name and tag: not the image's, where the stack can be told another."""
        return f"{_FOLDER}/{self.reference}" if self.variable else self.reference

    def used(self) -> str | None:
        """The official image, or the stand-in that would be built now; None where neither is
        here."""
        if has_image(self.reference):
            return self.reference
        made_from = _label(self.stand_in, STAND_IN_LABEL)
        return self.stand_in if self.recipe and made_from == self.recipe.digest() else None


def provide() -> Images:
    """Makes sure that every image is on the engine. Raises LabError for one that can't be."""
    images = _needed()
    seconds: Mapping[str, float] = {}
    if _missing(images):
        with alone(paths.BUILD / "stand-ins.lock", "others are building stand-in images"):
            seconds = _obtain(_missing(images))
    used = [(image, name) for image in images if (name := image.used())]
    versions = {name: _label(name, _VERSION_LABEL) for _, name in used}
    return Images(
        grafana=any(_repository(image.reference) == "grafana/grafana" for image, _ in used),
        stand_ins={name: version for name, version in versions.items() if version},
        settings={
            image.variable: name
            for image, name in used
            if image.variable and name == image.stand_in
        },
        seconds=seconds,
    )


def _missing(images: Sequence[_Image]) -> list[_Image]:
    return [image for image in images if image.used() is None]


def _obtain(missing: Sequence[_Image]) -> dict[str, float]:
    """Pulls them, or builds those that can be where no registry has them; what building took."""
    if missing and _registry_has(missing[0].reference):
        for image in missing:
            _call(["docker", "pull", "--quiet", image.reference])
        return {}
    return _build_all({image.stand_in: image.recipe for image in missing if image.recipe})


def _registry_has(reference: str) -> bool:
    """Asked for the manifest, which is small: how long a pull takes says nothing."""
    return succeeds("docker", "manifest", "inspect", reference, seconds=_ANSWER_SECONDS)


def _needed() -> list[_Image]:
    """Every image that the Compose file names, and those that its builds start from."""
    said = subprocess.run(
        compose_command("--profile", "*", "config", "--format", "json", profiles=False),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    # Before variables are replaced.
    written = yaml.safe_load(paths.COMPOSE_FILE.read_text())["services"]
    found: dict[str, str | None] = {}
    for name, service in json.loads(said)["services"].items():
        if "build" in service:
            found |= dict.fromkeys(_bases(Path(service["build"]["context"]) / "Dockerfile"))
        else:
            found[service["image"]] = _variable(written[name]["image"])
    return [_Image(each, found[each], _recipe(each)) for each in sorted(found)]


def _variable(text: str) -> str | None:
    """The variable in `${VARIABLE:-default}`."""
    found = re.match(r"\$\{(\w+):-", text)
    return found[1] if found else None


def _bases(dockerfile: Path) -> set[str]:
    stages = re.findall(r"^FROM (\S+)(?: AS (\S+))?", dockerfile.read_text(), re.MULTILINE)
    return {image for image, _ in stages} - {stage for _, stage in stages} - {"scratch"}


def _recipe(reference: str) -> Recipe | None:
    make = RECIPES.get(_repository(reference))
    if make is None:
        raise LabError(f"{reference} is not here, and tests/compose/images has no stand-in of it")
    return make()


def _repository(reference: str) -> str:
    return reference.partition(":")[0]


def _label(reference: str, name: str) -> str:
    labels: dict[str, str] = inspected("image", reference, "{{json .Config.Labels}}") or {}
    return labels.get(name, "")


def _build_all(wanted: Mapping[str, Recipe]) -> dict[str, float]:
    ensure_built()
    seconds = {} if has_image(BASE) else {BASE: _timed(_build_base)}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        took = pool.map(lambda item: _timed(_build, *item), wanted.items())
        return seconds | dict(zip(wanted, took, strict=True))


def _timed(make: Any, *arguments: Any) -> float:
    begun = time.monotonic()
    make(*arguments)
    return time.monotonic() - begun


def _build_base() -> None:
    """Debian, and the certificates that this machine trusts: package clients in the stand-ins
    connect as those of the machine do."""
    if os.getuid():
        raise LabError("stand-in images are made by debootstrap, which needs root")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        _call(["debootstrap", "--variant=minbase", "--include=ca-certificates", SUITE, str(root)])
        bundle = str(CERTIFICATES)
        (root / bundle.lstrip("/")).write_bytes(CERTIFICATES.read_bytes())
        changes = ['CMD ["bash"]', f"ENV SSL_CERT_FILE={bundle} PIP_CERT={bundle}"]
        options = [word for change in changes for word in ("--change", change)]
        with subprocess.Popen(["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE) as tar:
            _call(["docker", "import", *options, "-", BASE], tar.stdout)


def _build(reference: str, recipe: Recipe) -> None:
    """Builds it under a name of its own, asks it for its version, and gives it its labels."""
    recipe.prepare()
    draft = f"{_FOLDER}-{recipe.name}"
    _docker_build(draft, recipe.dockerfile.read_bytes(), recipe.files)
    run = ["docker", "run", "--rm", "--network=none", "--entrypoint", recipe.version[0], draft]
    said = subprocess.run([*run, *recipe.version[1:]], capture_output=True, text=True, check=True)
    # Without colours.
    version = re.sub(r"\x1b\[[\d;]*m", "", said.stdout + said.stderr).strip().splitlines()[0]
    labels = {STAND_IN_LABEL: recipe.digest(), _VERSION_LABEL: version}
    lines = [f"LABEL {name}={json.dumps(value)}" for name, value in labels.items()]
    _docker_build(reference, "\n".join([f"FROM {draft}", *lines, ""]).encode(), {})
    subprocess.run(["docker", "image", "rm", draft], capture_output=True, check=True)


def _docker_build(reference: str, dockerfile: bytes, files: Mapping[str, Path]) -> None:
    """`docker build` of a context that is sent as it is read. With the machine's network, so that
    its package clients work where the engine has no bridge."""
    with tempfile.TemporaryFile() as context:
        with tarfile.open(
            fileobj=context, mode="w", format=tarfile.GNU_FORMAT, dereference=True
        ) as tar:
            _add_text(tar, dockerfile)
            for name, path in files.items():
                _add(tar, path, name)
        context.seek(0)
        _call(["docker", "build", "--quiet", "--network=host", "--tag", reference, "-"], context)


def _add_text(tar: tarfile.TarFile, dockerfile: bytes) -> None:
    entry = tarfile.TarInfo("Dockerfile")
    entry.size = len(dockerfile)
    tar.addfile(entry, io.BytesIO(dockerfile))


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    """A file, or a folder with what its links lead to; Debian's JDK has some that lead nowhere."""
    if path.is_file():
        tar.add(path, name)
    for parent, _, files in os.walk(path, followlinks=True):
        for file in (Path(parent) / each for each in files):
            if file.is_file():
                tar.add(file, f"{name}/{file.relative_to(path)}")


def _call(command: Sequence[str], stdin: IO[bytes] | None = None) -> None:
    result = subprocess.run(
        command,
        stdin=stdin if stdin else subprocess.DEVNULL,
        capture_output=True,
        # The engine's own builder, which needs no plugin.
        env={**os.environ, "DOCKER_BUILDKIT": "0"},
        check=False,
    )
    if result.returncode:
        said = (result.stdout + result.stderr).decode(errors="replace").strip().splitlines()
        raise LabError(f"{' '.join(command[:2])} failed: " + " / ".join(said[-5:]))
