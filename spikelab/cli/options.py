"""Options that several commands take."""

from pathlib import Path
from typing import Annotated

import typer

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
    Path | None,
    typer.Option("--json", metavar="FILE", help="write the run record there as well; - prints it"),
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
