"""A sweep's result on the console: which rates were held, or a row a run."""

from rich.table import Table
from rich.text import Text

from spikelab.console import out
from spikelab.experiments.state import CellState, ExperimentState
from spikelab.experiments.sweep import answer, only_rates_differ
from spikelab.held_rates import by_variant
from spikelab.prediction.compare import predicted_rates
from spikelab.prediction.table import show_predictions
from spikelab.rate_table import show_rates
from spikelab.record import RunRecord, read_record
from spikelab.tables import verdict_text
from spikelab.totals import Totals
from spikelab.units import show_seconds

_FIGURES = ("requests", "failed", "p50", "p95", "p99")


def show_sweep(state: ExperimentState) -> None:
    """By rate where rates are all that differs; else a row a run, and spikes beside predictions."""
    records = list(state.records())
    if only_rates_differ(records):
        rates = by_variant(step for record in records for step in record.steps)
        show_rates(rates, answer(records).variants, predicted_rates(records))
    elif records:
        out.print(_cells(state))
        show_predictions(records)


def _cells(state: ExperimentState) -> Table:
    values = list(dict.fromkeys(name for cell in state.cells for name in cell.values))
    table = Table(box=None, pad_edge=False)
    for name in (*values, "variant"):
        table.add_column(name)
    for name in ("repeat", *_FIGURES):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for cell in sorted(state.cells, key=_place):
        record = read_record(cell.testid) if cell.testid else None
        table.add_row(
            *(str(cell.values.get(name, "")) for name in values),
            cell.variant or "",
            str(cell.repeat),
            *(_figures(record) if record and record.steps else [""] * len(_FIGURES)),
            verdict_text(record) if record else Text("no valid run"),
        )
    return table


def _place(cell: CellState) -> tuple[object, ...]:
    """Runs of a kind stand together, whatever order they were run in."""
    return (tuple(cell.values.values()), cell.variant or "", cell.repeat)


def _figures(record: RunRecord) -> list[str]:
    totals = Totals.of(record.steps)
    latency = totals.latency
    return [
        f"{totals.requests:,}",
        f"{totals.failures:,}",
        *(show_seconds(seconds) for seconds in (latency.p50, latency.p95, latency.p99)),
    ]
