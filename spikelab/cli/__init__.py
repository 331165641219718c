"""The command line behind ./lab: one thin function a command, grouped by what they work on."""

import sys

# In the order in which `./lab --help` lists them: importing a module registers its commands.
from spikelab.cli import stack, run, imports, experiments, report, test  # isort: skip
from spikelab.cli.app import app
from spikelab.errors import stop_on_end_signals

__all__ = ["experiments", "imports", "main", "report", "run", "stack", "test"]


def main() -> None:
    """Runs the CLI. A stop from outside and a closed terminal count as Ctrl-C."""
    stop_on_end_signals()
    try:
        app(prog_name="./lab")
    except BrokenPipeError:
        # The reader of our output has gone (`./lab runs | head`).
        sys.stderr.close()
