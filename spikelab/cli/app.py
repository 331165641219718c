"""The app that commands are registered with; a user's mistake becomes one line."""

from collections.abc import Callable
from functools import wraps
from typing import NoReturn, ParamSpec

import typer

from spikelab.console import err
from spikelab.errors import EXIT_FAILED, EXIT_INTERRUPTED, LabError

app = typer.Typer(
    help="Spikelab: a load-test lab in a box.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

P = ParamSpec("P")


def command(
    name: str, *, passes_options: bool = False
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
        return app.command(name, context_settings=settings)(guarded)

    return register


def _end(message: str, code: int) -> NoReturn:
    err.print(f"lab: {message}")
    raise typer.Exit(code)
