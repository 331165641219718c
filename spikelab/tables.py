"""Tables on the console: a run's result, runs side by side, lists."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from spikelab.console import out
from spikelab.phase_table import show_phases
from spikelab.plans.estimate import estimate
from spikelab.plans.load import open_plan, plan_files
from spikelab.plans.values import written
from spikelab.prediction.compare import last_good_seconds
from spikelab.prediction.table import prediction_figures
from spikelab.record import Connections, RunRecord, Step
from spikelab.runtime import ComponentStatus
from spikelab.units import show_seconds

VERDICT_COLOURS = {"pass": "green", "fail": "red", "inconclusive": "yellow"}
_MOST_WAVES = 6


def show_results(records: Sequence[RunRecord]) -> None:
    """One column a run, so that several stand side by side; before it each run's phases."""
    for record in records:
        if len(record.steps) > 1:
            out.print(f"{_heading(record)}:")
            show_phases(record.steps)
    table = Table(show_header=len(records) > 1, box=None, pad_edge=False)
    table.add_column("")
    for record in records:
        table.add_column(_heading(record), overflow="fold")
    columns = [_figures(record) for record in records]
    for name in dict.fromkeys(name for column in columns for name in column):
        table.add_row(name, *(column.get(name, "") for column in columns))
    table.add_row("verdict", *(verdict_text(record) for record in records))
    out.print(table)


def _heading(record: RunRecord) -> str:
    variants = {step.variant for step in record.steps} - {None}
    return ", ".join(str(variant) for variant in variants) or record.testid


def verdict_text(record: RunRecord) -> Text:
    """Coloured, with the reasons of an invalid run."""
    verdict = Text(record.verdict, style=VERDICT_COLOURS[record.verdict])
    if record.reasons:
        verdict.append(f" (invalid: {'; '.join(record.reasons)})", style="default")
    return verdict


def _figures(record: RunRecord) -> dict[str, str]:
    figures: dict[str, str] = {}
    if len(record.steps) == 1:
        figures.update(_step_figures(record.steps[0]))
    waited = record.queue_wait_seconds
    if waited.max is not None:
        figures["worker-queue wait"] = (
            f"p50 {show_seconds(waited.p50)}, p99 {show_seconds(waited.p99)}, "
            f"max {show_seconds(waited.max)}"
        )
    figures.update(_connection_figures(record.connections))
    figures.update(prediction_figures(record))
    if record.generator.cpu is not None:
        memory = (record.generator.memory_bytes or 0) / 2**20
        limited = ", the limit of this run" if record.generator.limited else ""
        figures["driver"] = f"{record.generator.cpu:.2f} cores, {memory:,.0f} MiB{limited}"
    return figures


def _step_figures(step: Step) -> dict[str, str]:
    latency = step.latency_seconds
    good = step.requests - step.failures
    figures = {
        "requests": f"{step.requests:,} ({good:,} good, {step.failures:,} failed)",
        **_pace(step),
        "latency": ", ".join(
            f"{name} {show_seconds(value)}"
            for name, value in (
                ("p50", latency.p50),
                ("p95", latency.p95),
                ("p99", latency.p99),
                ("max", latency.max),
            )
        )
        if good
        else "no good answer",
        **_last(step, good),
    }
    outside = step.outside_server_share
    if outside is not None:
        figures["mean"] = (
            f"{show_seconds(step.latency_mean_seconds)}, of which the server's own timer saw "
            f"{show_seconds(step.server_mean_seconds)}: {outside:.0%} outside it"
        )
    if step.waves:
        figures["waves"] = _waves(step)
    errors = step.errors.by_class()
    if errors:
        figures["failures"] = ", ".join(f"{name} {count:,}" for name, count in errors.items())
    return figures


def _last(step: Step, good: int) -> dict[str, str]:
    """The last good answer where it is known; a timeout after it is none."""
    answered = last_good_seconds(step, good)
    if answered is not None:
        return {"last answer": f"after {show_seconds(answered)}"}
    return {"last user": f"done after {show_seconds((step.ended - step.started).total_seconds())}"}


def _pace(step: Step) -> dict[str, str]:
    if step.start_spread_seconds is not None:
        return {"started within": show_seconds(step.start_spread_seconds)}
    offered = "" if step.offered_rate is None else f" of {step.offered_rate:,.6g} offered"
    return {
        "rate": f"{step.started_rate or 0:,.1f}/s started{offered}, "
        f"{step.achieved_rate or 0:,.1f}/s achieved",
        **({"dropped": f"{step.dropped:,}"} if step.dropped else {}),
    }


def _waves(step: Step) -> str:
    waves = step.waves or []
    shown = [f"{wave.answers:,} at {show_seconds(wave.at_seconds)}" for wave in waves[:_MOST_WAVES]]
    more = len(waves) - _MOST_WAVES
    return ", ".join(shown) + (f", … {more} more" if more > 0 else "")


def _connection_figures(connections: Connections) -> dict[str, str]:
    if connections.established_peak is None:
        return {}
    return {
        "connections": f"{connections.established_peak:,} established at most, "
        f"{_count(connections.predicted)} possible ({connections.policy})",
        "accept queue": f"{_count(connections.accept_queue_peak)} of "
        f"{_count(connections.accept_queue_limit)} at most when read, "
        f"{_count(connections.listen_overflows)} overflows",
    }


def _count(number: int | None) -> str:
    """Of a target that is not the lab's some of these are not known."""
    return "?" if number is None else f"{number:,}"


def show_runs(records: Sequence[RunRecord]) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("testid", "plan", "variant", "requests", "failed", "p95", "verdict"):
        table.add_column(name, justify="right" if name in ("requests", "failed", "p95") else "left")
    for record in records:
        steps = record.steps
        table.add_row(
            record.testid,
            record.plan,
            ", ".join(sorted({step.variant for step in steps if step.variant})),
            f"{sum(step.requests for step in steps):,}",
            f"{sum(step.failures for step in steps):,}",
            show_seconds(steps[-1].latency_seconds.p95) if steps else "",
            verdict_text(record),
        )
    out.print(table)


def show_plans() -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("plan", no_wrap=True)
    table.add_column("takes", no_wrap=True)
    table.add_column("what it does, and how to change it")
    for name in plan_files():
        source = open_plan(name)
        plan = source.plan()
        table.add_row(name, str(estimate(source, plan)), plan.about)
        for preset, what in plan.presets.items():
            short = open_plan(name, preset=preset)
            takes = str(estimate(short, short.plan()))
            table.add_row("", takes, f"--preset {preset}: {what.about}", style="dim")
        if plan.parameters:
            values = [f"{key}={written(p.default)}" for key, p in plan.parameters.items()]
            table.add_row("", "", f"--set {' '.join(values)}", style="dim")
    out.print(table)


def show_status(components: Sequence[ComponentStatus]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("component", "state", "address", ""):
        table.add_column(column)
    for each in components:
        colour = {"running": "green", "stopped": "dim"}.get(each.state, "red")
        table.add_row(each.name, Text(each.state, style=colour), each.address, each.detail)
    out.print(table)
