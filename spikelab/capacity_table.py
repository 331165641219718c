"""A capacity search on the console: its steps by rate, and the answer in a sentence."""

from collections.abc import Callable, Sequence

from rich.table import Table
from rich.text import Text

from spikelab.console import out
from spikelab.experiments.capacity_answer import CapacityAnswer, CapacityStep
from spikelab.prediction.compare import predicted_capacity
from spikelab.record import Resources, RunRecord
from spikelab.tables import VERDICT_COLOURS
from spikelab.units import show_seconds

_RESOURCES: dict[str, Callable[[Resources], str]] = {
    "CPU": lambda used: "" if used.cpu_share is None else f"{used.cpu_share:.0%}",
    "memory": lambda used: (
        "" if used.memory_bytes is None else f"{used.memory_bytes / 1e6:,.0f} MB"
    ),
    "open files": lambda used: "" if used.open_files is None else f"{used.open_files:,}",
    "workers": lambda used: (
        "" if used.worker_threads_share is None else f"{used.worker_threads_share:.0%}"
    ),
}


def show_capacity(answer: CapacityAnswer, records: Sequence[RunRecord]) -> None:
    """A row a step; of the resources those that were seen. `records`: of its runs."""
    shown = {
        name: text
        for name, text in _RESOURCES.items()
        if any(text(step.resources) for step in answer.steps)
    }
    table = Table(box=None, pad_edge=False)
    for name in (answer.parameter, "started/s", "good", "p50", "p95", "p99", *shown):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for step in sorted(answer.steps, key=lambda step: step.value):
        table.add_row(
            *_figures(step), *(text(step.resources) for text in shown.values()), _said(step)
        )
    out.print(table)
    out.print("; ".join([str(answer), *predicted_capacity(answer.parameter, records)]))
    if answer.overload:
        out.print(str(answer.overload))


def _figures(step: CapacityStep) -> list[str]:
    latency = step.latency_seconds
    return [
        f"{step.value:,.6g}",
        "" if step.started_rate is None else f"{step.started_rate:,.1f}",
        "" if step.success is None else f"{step.success:.4%}",
        *(show_seconds(seconds) for seconds in (latency.p50, latency.p95, latency.p99)),
    ]


def _said(step: CapacityStep) -> Text:
    said = Text(step.verdict, style=VERDICT_COLOURS[step.verdict])
    return said.append(f" ({step.why})", style="default") if step.why else said
