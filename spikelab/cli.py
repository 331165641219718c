"""The command line behind ./lab: one thin function a command."""

import os
import signal
import sys
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, NoReturn, ParamSpec

import typer

from spikelab import demo as demo_command
from spikelab import doctor as doctor_command
from spikelab import experiment, import_runs, paths, tables, testing
from spikelab.abandoned import close_abandoned
from spikelab.console import err, out, say
from spikelab.errors import (
    END_SIGNALS,
    EXIT_FAILED,
    EXIT_INCONCLUSIVE,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_SLO_MISSED,
    LabError,
    RunInterruptedError,
    UsageError,
)
from spikelab.importers.formats import FORMATS
from spikelab.links import dashboard_url
from spikelab.locks import going_run, no_run
from spikelab.plan_load import load_plan, split_assignment
from spikelab.record import RunRecord, all_records
from spikelab.run import RunOptions
from spikelab.runtime import COMPONENTS, Runtime
from spikelab.runtime.choice import choose, current, remember

app = typer.Typer(
    help="Spikelab: a load-test lab in a box.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

P = ParamSpec("P")
RuntimeOption = Annotated[
    str | None, typer.Option("--runtime", help="auto (default), docker or host")
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="a parameter of the plan")
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
    err.print(f"lab: {message}", markup=False)
    raise typer.Exit(code)


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
    _up(runtime, _names(without), _names(on_demand))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _up(asked: str | None, without: Sequence[str] = (), on_demand: Sequence[str] = ()) -> Runtime:
    if on_demand and (going := going_run()):
        # Redis restarts the target, and either takes its share of the machine.
        raise LabError(f"a run is going: {going}: wait for it, or stop it with Ctrl-C")
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
    for name in ("target", "prometheus", "influxdb", "redis", "grafana"):
        if getattr(addresses, name):
            say(f"{name:<10} {getattr(addresses, name)}")
    for name, url in (addresses.proxy or {}).items():
        say(f"{'proxy':<10} {url} ({name})")
    return runtime


@command("down")
def down() -> None:
    """Stop the stack; what it stored stays."""
    going = going_run()
    if going:
        raise LabError(f"a run is going: {going}: wait for it, or stop it with Ctrl-C")
    say("stopped" if current().down() else "nothing was running")


@command("status")
def status() -> None:
    """Show every component's state; exit 1 when one that was started has died."""
    components = current().status()
    tables.show_status(components)
    if going := going_run():
        say(f"run {going}")
    if any(component.state not in ("running", "starting", "stopped") for component in components):
        raise typer.Exit(EXIT_FAILED)


@command("doctor")
def doctor() -> None:
    """Check this machine, and say for each thing what it limits."""
    raise typer.Exit(EXIT_OK if doctor_command.run() else EXIT_FAILED)


@command("demo")
def demo(runtime: RuntimeOption = None, json_file: JsonOption = None) -> None:
    """Start the stack and run 1,000 users on 200 worker threads, then on 500."""
    _writable(json_file)
    started = _up(runtime)
    _finish(started, demo_command.run(started), json_file)


@command("run")
def run(
    plan: Annotated[str, typer.Argument(help="a ready plan's name, or a file")],
    assignments: SetOption = None,
    target_settings: TargetSetOption = None,
    labels: LabelOption = None,
    json_file: JsonOption = None,
    driver: Annotated[str | None, typer.Option(help="k6 or locust, instead of the plan's")] = None,
    sinks: Annotated[
        list[str] | None,
        typer.Option("--sink", help="a store more: influxdb keeps every single request"),
    ] = None,
    live: Annotated[bool, typer.Option(help="serve k6's own dashboard during the run")] = False,
    i_own_this_target: Annotated[
        bool, typer.Option("--i-own-this-target", help="the plan's target is not on this machine")
    ] = False,
) -> None:
    """Run a plan and judge it. Exit 0: within the SLO, 99: missed, 3: inconclusive."""
    loaded = load_plan(plan, assignments or [], driver, sinks or [])
    options = RunOptions(
        labels=dict(split_assignment(text, "--label") for text in labels or []),
        target_settings=dict(
            split_assignment(text, "--target-set") for text in target_settings or []
        ),
        live=live,
        own_target_elsewhere=i_own_this_target,
    )
    _writable(json_file)
    experiment.check(loaded, options)
    runtime = _running()
    _finish(runtime, experiment.run_all(runtime, loaded, options), json_file)


def _running() -> Runtime:
    """The runtime that is up; where nothing runs at all, it is started as `up` would."""
    runtime = current()
    if any(component.running for component in runtime.status()):
        return runtime
    return _up(None)


def _writable(json_file: Path | None) -> None:
    if json_file is None:
        return
    folder = json_file.resolve().parent
    if not json_file.name or json_file.is_dir():
        raise UsageError(f"--json {json_file}: this is a folder, not a file")
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(f"--json {json_file}: there is no folder {folder} that can be written to")


def _finish(runtime: Runtime, runs: Iterator[RunRecord], json_file: Path | None) -> NoReturn:
    """Runs, then shows what there is, also when a later run fails; ends with the worst verdict."""
    records: list[RunRecord] = []
    try:
        records.extend(runs)
    finally:
        if records:
            _show(runtime, records, json_file)
    if not all(record.valid for record in records):
        raise typer.Exit(EXIT_FAILED)
    verdicts = {record.verdict for record in records}
    if "fail" in verdicts:
        raise typer.Exit(EXIT_SLO_MISSED)
    raise typer.Exit(EXIT_INCONCLUSIVE if "inconclusive" in verdicts else EXIT_OK)


def _show(runtime: Runtime, records: list[RunRecord], json_file: Path | None) -> None:
    tables.show_results(records)
    grafana = runtime.endpoints().grafana
    for record in records:
        if grafana:
            out.print(f"dashboard  {dashboard_url(grafana, record)}", markup=False)
        out.print(f"record     {paths.shown(record.folder / 'run.json')}", markup=False)
    if json_file is not None:
        experiment.write_result(json_file, records)


@command("runs")
def runs() -> None:
    """List the recorded runs, newest first."""
    with no_run() as idle:
        if idle:
            close_abandoned(current().endpoints().influxdb)
    tables.show_runs(list(all_records()))


@command("plans")
def plans() -> None:
    """List the ready plans."""
    tables.show_plans()


@command("import")
def import_(
    format_name: Annotated[str, typer.Argument(metavar="FORMAT", help=", ".join(FORMATS))],
    path: Annotated[Path, typer.Argument(help="a report, or a folder of reports")],
    slo: Annotated[
        list[str] | None,
        typer.Option("--slo", metavar="OBJECTIVE", help="judge each rate by it: 'p95 < 1s'"),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="write which rates were held")
    ] = None,
) -> None:
    """Turn reports of vegeta, k6, Locust or Fortio into runs. Exit 0: read, whatever they say."""
    _writable(json_file)
    import_runs.run(format_name, path, slo or [], json_file)


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


@command("test", passes_options=True)
def test(
    fast: Annotated[bool, typer.Option(help="leave out what takes over a minute")] = False,
    arguments: Annotated[
        list[str] | None, typer.Argument(help="handed to pytest", metavar="[PYTEST…]")
    ] = None,
) -> None:
    """Run linters and all tests; installs and builds what they need."""
    raise typer.Exit(testing.run(fast, arguments or []))


def main() -> None:
    """Runs the CLI. A stop from outside and a closed terminal count as Ctrl-C."""
    for number in END_SIGNALS:
        signal.signal(number, _interrupt)
    try:
        app(prog_name="./lab")
    except BrokenPipeError:
        # The reader of our output has gone (`./lab runs | head`).
        sys.stderr.close()


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt
