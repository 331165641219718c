"""Commands for the stack: up, down, status, doctor, logs, open."""

import os
import webbrowser
from collections.abc import Sequence
from typing import Annotated

import typer

from spikelab.cli.app import RuntimeOption, command
from spikelab.console import out, say, warn
from spikelab.doctor import run
from spikelab.errors import EXIT_FAILED, EXIT_OK, LabError, RunInterruptedError, UsageError
from spikelab.history import VARIABLE, forget_raw_samples, require_age
from spikelab.report.tables import Marked, Meaning, Table, print_table
from spikelab.settings import COMPONENTS, load_stack_settings
from spikelab.stack import choose, current, remember
from spikelab.stack.base import Runtime
from spikelab.stack.locks import active_run, no_run
from spikelab.stores import InfluxDB


@command("up")
def up(
    runtime: RuntimeOption = None,
    without: Annotated[
        str, typer.Option(help="leave out: grafana, influxdb, or both with a comma")
    ] = "",
    on_demand: Annotated[
        str, typer.Option("--with", help="start as well: proxy, redis, or both with a comma")
    ] = "",
) -> None:
    """Start the stack and wait until it is healthy."""
    start(runtime, _names(without), _names(on_demand))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def start(asked: str | None, without: Sequence[str] = (), on_demand: Sequence[str] = ()) -> Runtime:
    """Starts the stack in the runtime asked for, says where everything is, and returns it."""
    if on_demand and (going := active_run()):
        # Redis restarts the target, and either takes its share of the machine.
        raise LabError(f"a run is going: {going}: wait for it, or stop it with Ctrl-C")
    age = require_age(load_stack_settings().values[VARIABLE])
    runtime, reason = choose(asked)
    say(f"runtime: {runtime.name} ({reason})")
    # Before the start: `down` has to find what an interrupted `up` has begun.
    remember(runtime)
    try:
        runtime.up(without, on_demand)
    except KeyboardInterrupt as error:
        raise RunInterruptedError(
            "interrupted: what has started stays up: ./lab down stops it"
        ) from error
    addresses = runtime.endpoints()
    if addresses.influxdb:
        _forget(addresses.influxdb, age)
    for name in ("target", "prometheus", "influxdb", "redis", "grafana"):
        if getattr(addresses, name):
            say(f"{name:<10} {getattr(addresses, name)}")
    for name, url in (addresses.proxy or {}).items():
        say(f"{'proxy':<10} {url} ({name})")
    return runtime


def _forget(url: str, age: str) -> None:
    """Not beside a run, which would measure it."""
    try:
        with no_run() as idle:
            forgotten = forget_raw_samples(InfluxDB(url), age) if idle else []
        if not idle and age != "0":
            say(f"a run is going: raw samples older than {age} stay until the next ./lab up")
    except LabError as error:
        warn(f"raw samples older than {age} are still there: {error}")
        return
    if forgotten:
        say(f"deleted raw samples older than {age} ({VARIABLE}); phases and runs stay")


@command("down")
def down() -> None:
    """Stop the stack; what it stored stays."""
    going = active_run()
    if going:
        raise LabError(f"a run is going: {going}: wait for it, or stop it with Ctrl-C")
    say("stopped" if current().down() else "nothing was running")


# Every other state is that of a component that should run.
_STATES: dict[str, Meaning] = {"running": "good", "stopped": "aside"}


@command("status")
def status() -> None:
    """Show every component's state; exit 1 when one that was started has died."""
    components = current().status()
    columns = ("component", "state", "address", "")
    rows = [
        (c.name, Marked(c.state, _STATES.get(c.state, "bad")), c.address, c.detail)
        for c in components
    ]
    print_table(Table("Components", columns, rows))
    if going := active_run():
        say(f"run {going}")
    if any(component.state not in ("running", "starting", "stopped") for component in components):
        raise typer.Exit(EXIT_FAILED)


@command("doctor")
def doctor() -> None:
    """Check this machine, and say for each thing what it limits."""
    raise typer.Exit(EXIT_OK if run() else EXIT_FAILED)


def running() -> Runtime:
    """The runtime that is up; where nothing runs at all, it is started as `up` would."""
    runtime = current()
    if any(component.running for component in runtime.status()):
        return runtime
    return start(None)


@command("logs")
def logs(
    component: Annotated[str, typer.Argument(help=", ".join(COMPONENTS))],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="wait for more")] = False,
) -> None:
    """Print a component's log."""
    if component not in COMPONENTS:
        raise UsageError(f"unknown component '{component}' (known: {', '.join(COMPONENTS)})")
    argv = current().log_command(component, follow)
    os.execvp(argv[0], argv)


@command("open")
def open_dashboard() -> None:
    """Open Grafana in the browser."""
    grafana = current().endpoints().grafana
    if grafana is None:
        raise LabError("Grafana is not running: ./lab up says what is missing")
    out.print(grafana)
    webbrowser.open(grafana)
