"""The command for those who work on the lab: test."""

import os
import sys
from typing import Annotated

import typer

from spikelab import paths
from spikelab.cli.app import command


@command("test", passes_options=True)
def test(
    fast: Annotated[bool, typer.Option(help="leave out what takes over a minute")] = False,
    arguments: Annotated[
        list[str] | None, typer.Argument(help="handed to pytest", metavar="[PYTEST…]")
    ] = None,
) -> None:
    """Run linters and all tests; installs and builds what they need."""
    os.chdir(paths.ROOT)
    script = ["-m", "tests.run", *(["--fast"] if fast else []), "--"]
    os.execv(sys.executable, [sys.executable, *script, *(arguments or [])])
