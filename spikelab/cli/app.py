"""The app that commands are registered with, and the options that several of them take; a user's
mistake becomes one line."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, NoReturn, ParamSpec

import typer

from spikelab.console import err
from spikelab.errors import EXIT_FAILED, EXIT_INTERRUPTED, LabError
from spikelab.plans.load import split_assignment
from spikelab.run import RunOptions

app = typer.Typer(
    help="Spikelab: a load-test lab in a box.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

P = ParamSpec("P")


# Commands of two words, such as `history rebuild`.
history_app = typer.Typer(help="The finished runs that InfluxDB keeps.", no_args_is_help=True)
app.add_typer(history_app, name="history")


def command(
    name: str, *, of: typer.Typer = app, passes_options: bool = False
) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Registers a command; its LabErrors become one line and the contract's exit code."""

    def register(function: Callable[P, None]) -> Callable[P, None]:
        @wraps(function)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                function(*args, **kwargs)
            except LabError as error:
                _end(str(error), error.exit_code)
            except OSError as error:
                _end(f"{error.filename or name}: {error.strerror}", EXIT_FAILED)
            except KeyboardInterrupt:
                _end("interrupted", EXIT_INTERRUPTED)

        settings = {"ignore_unknown_options": passes_options}
        return of.command(name, context_settings=settings)(guarded)

    return register


def _end(message: str, code: int) -> NoReturn:
    err.print(f"lab: {message}")
    raise typer.Exit(code)


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
