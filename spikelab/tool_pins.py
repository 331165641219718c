"""host/tools/tools.yml: the programs the host runtime builds, each pinned to a version."""

import re
import subprocess

import yaml
from pydantic import BaseModel, ConfigDict

from spikelab import paths
from spikelab.errors import LabError


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
    """One tool as tools.yml declares it."""

    module: str
    release: Release
    binaries: dict[str, str]
    tags: list[str]
    ldflags: str
    version: Version
    build_seconds: int

    def pinned_release(self, folder: str) -> str:
        """The release that host/tools/<folder>/go.mod pins."""
        go_mod = paths.HOST_TOOLS / folder / "go.mod"
        text = go_mod.read_text(encoding="utf-8")
        pin = re.search(rf"^\s*(?:require )?{re.escape(self.module)} (v\S+)", text, re.MULTILINE)
        parts = re.match(self.release.pattern, pin[1]) if pin else None
        if parts is None:
            raise LabError(f"{paths.shown(go_mod)} pins no usable version of {self.module}")
        return self.release.format.format(*parts.groups())

    def prints_its_version(self, program: str) -> bool:
        """Whether a program on this machine is of the pinned release."""
        folder = next(name for name, tool in declared_tools().items() if tool == self)
        said = subprocess.run(
            [program, *self.version.arguments], capture_output=True, text=True, check=False
        )
        wanted = self.version.prints.format(release=self.pinned_release(folder))
        return wanted in said.stdout + said.stderr


def declared_tools() -> dict[str, Tool]:
    """Tool by folder of host/tools/."""
    text = (paths.HOST_TOOLS / "tools.yml").read_text(encoding="utf-8")
    return {name: Tool.model_validate(tool) for name, tool in yaml.safe_load(text).items()}
