"""Options that several commands take."""

import os
from pathlib import Path
from typing import Annotated

import typer

from spikelab.errors import UsageError
from spikelab.plans.load import split_assignment
from spikelab.run import RunOptions

RuntimeOption = Annotated[
    str | None, typer.Option("--runtime", help="auto (default), docker or host")
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="a parameter of the plan")
]
PresetOption = Annotated[
    str | None, typer.Option("--preset", metavar="NAME", help="a preset of the plan, such as quick")
]
TargetSetOption = Annotated[
    list[str] | None,
    typer.Option("--target-set", metavar="NAME=VALUE", help="a setting of the lab's own target"),
]
LabelOption = Annotated[
    list[str] | None, typer.Option("--label", metavar="KEY=VALUE", help="kept in the run record")
]
JsonOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="write the run record there as well")
]
DriverOption = Annotated[str | None, typer.Option(help="k6 or locust, instead of the plan's")]
SinkOption = Annotated[
    list[str] | None,
    typer.Option("--sink", help="a store more: influxdb keeps every single request"),
]
OwnTargetOption = Annotated[
    bool, typer.Option("--i-own-this-target", help="the plan's target is not on this machine")
]


def assigned(texts: list[str] | None, option: str) -> dict[str, str]:
    """`key=value` texts as a mapping. Raises UsageError naming the option."""
    return dict(split_assignment(text, option) for text in texts or [])


def run_options(
    labels: list[str] | None, target_settings: list[str] | None, owned: bool, live: bool = False
) -> RunOptions:
    """What these options add to a plan. Raises UsageError."""
    return RunOptions(
        labels=assigned(labels, "--label"),
        target_settings=assigned(target_settings, "--target-set"),
        live=live,
        own_target_elsewhere=owned,
    )


def require_writable(json_file: Path | None) -> None:
    """Before anything starts: the result can be written there. Raises UsageError."""
    if json_file is None:
        return
    folder = json_file.resolve().parent
    if not json_file.name or json_file.is_dir():
        raise UsageError(f"--json {json_file}: this is a folder, not a file")
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(f"--json {json_file}: there is no folder {folder} that can be written to")
