"""The phases of one run as a table: rate, latency, failures and CPU, a row a phase."""

from collections.abc import Sequence

from rich.table import Table

from spikelab.console import out
from spikelab.record import Step
from spikelab.units import show_seconds

# The stack's components that requests pass through, as their CPU is shown.
_IN_THE_PATH = ("target", "proxy", "redis")


def show_phases(steps: Sequence[Step]) -> None:
    """Latencies are of good answers, `outside` is the part of the mean that the target's own timer
    does not see; CPU is in cores."""
    components = [name for name in _IN_THE_PATH if any(name in s.component_cpu for s in steps)]
    table = Table(box=None, pad_edge=False)
    table.add_column("phase")
    for name in ("requests", "failed", "dropped", "offered/s", "started/s"):
        table.add_column(name, justify="right")
    for name in ("p50", "p99", "max", "mean", "outside"):
        table.add_column(name, justify="right")
    for name in (*components, "driver"):
        table.add_column(f"{name} CPU", justify="right")
    table.add_column("verdict")
    for step in steps:
        table.add_row(*_cells(step, components))
    out.print(table)


def _cells(step: Step, components: Sequence[str]) -> list[str]:
    latency, outside = step.latency_seconds, step.outside_server_share
    return [
        step.name,
        f"{step.requests:,}",
        f"{step.failures:,}",
        f"{step.dropped:,}",
        "" if step.offered_rate is None else f"{step.offered_rate:,.6g}",
        f"{step.started_rate or 0:,.1f}",
        *(show_seconds(v) for v in (latency.p50, latency.p99, latency.max)),
        show_seconds(step.latency_mean_seconds),
        "" if outside is None else f"{outside:.0%}",
        *(_cores(step.component_cpu.get(name)) for name in components),
        _cores(step.generator.cpu),
        step.verdict,
    ]


def _cores(cores: float | None) -> str:
    return "" if cores is None else f"{cores:.2f}"
