"""Builds of the target: the lab's own, or what a variant of a plan names in its place.

The files that a variant names are found and checked before anything starts.
"""

import hashlib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from spikelab import paths
from spikelab.errors import UsageError
from spikelab.plans.studies import Variant

_MANIFEST = "META-INF/MANIFEST.MF"


@dataclass(frozen=True)
class TargetBuild:
    """Another build of the lab's target than its own: an image, or a jar in place of the lab's;
    `compose`: override files on top of the lab's own. Paths are absolute."""

    jar: Path | None = None
    image: str | None = None
    compose: tuple[Path, ...] = ()

    def __str__(self) -> str:
        return ", ".join(
            filter(None, (self.image, *(p.name for p in (self.jar, *self.compose) if p)))
        )

    def fingerprint(self) -> dict[str, Any]:
        """What it is made of: two builds of one fingerprint are the same, as far as files tell."""
        return {
            "image": self.image,
            "jar": file_hash(self.jar) if self.jar else None,
            "compose": [f"{path.name}@{file_hash(path)}" for path in self.compose],
        }


@dataclass(frozen=True)
class RunningBuild:
    """What the running target is: an image by its digest, or a build by a hash; override files
    by name and hash."""

    image: str | None = None
    build: str | None = None
    compose: tuple[str, ...] = ()


def build_of(variant: Variant, plan_file: Path) -> TargetBuild | None:
    """The build that a variant names; None: the lab's own. Its paths are relative to the plan's
    file or to the working directory. Raises UsageError for a file that is not what it should be."""
    if not (variant.jar or variant.image or variant.compose):
        return None
    where = f"variant {variant.name}"
    jar = _found(variant.jar, plan_file, f"{where}: jar") if variant.jar else None
    if jar:
        _require_jar(jar, f"{where}: jar {variant.jar}")
    overrides = [_found(name, plan_file, f"{where}: compose") for name in variant.compose]
    for override in overrides:
        services_of(override)
    return TargetBuild(jar, variant.image, tuple(overrides))


def file_hash(path: Path) -> str:
    """`sha256:<hex>` of a file's content."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def services_of(override: Path) -> list[str]:
    """The services that a Compose file names. Raises UsageError where it is none."""
    try:
        read = yaml.load(override.read_text(encoding="utf-8"), Loader=_ComposeLoader)
        return list(read["services"])
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        raise UsageError(
            f"compose {paths.shown(override)}: this is no Compose file with services"
        ) from error


def missing_libraries(jar: Path) -> list[str]:
    """Of the jar's Class-Path, what does not lie where it looks for it: relative to itself."""
    named = _manifest(jar).get("Class-Path", "").split()
    return [name for name in named if ":" not in name and not (jar.parent / name).exists()]


class _ComposeLoader(yaml.SafeLoader):
    """Reads past Compose's own tags, `!reset` and `!override`."""


_ComposeLoader.add_multi_constructor("!", lambda loader, suffix, node: None)


def _found(name: str, plan_file: Path, where: str) -> Path:
    for folder in (plan_file.parent, Path.cwd()):
        path = (folder / name).absolute()
        if path.is_file():
            return path
    raise UsageError(
        f"{where}: there is no file '{name}' beside {paths.shown(plan_file)} or in {Path.cwd()}"
    )


def _require_jar(jar: Path, where: str) -> None:
    try:
        attributes = _manifest(jar)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise UsageError(f"{where}: this is no jar") from error
    if "Main-Class" not in attributes:
        raise UsageError(f"{where}: its manifest names no Main-Class, so `java -jar` cannot run it")


def _manifest(jar: Path) -> dict[str, str]:
    """A jar's main attributes. Lines are at most 72 bytes; a line that begins with a space goes on
    with the one before."""
    with zipfile.ZipFile(jar) as archive:
        text = archive.read(_MANIFEST).decode()
    lines = text.replace("\r\n", "\n").replace("\n ", "").splitlines()
    return dict(line.split(": ", 1) for line in lines if ": " in line)
