"""Tested rates as a table, a row a rate, and in a line what each variant holds."""

from collections.abc import Callable, Mapping, Sequence

from rich.table import Table
from rich.text import Text

from spikelab.console import out
from spikelab.held_rates import HeldRates, Outcome, Rates, outcome
from spikelab.prediction.compare import rate_text
from spikelab.record import Step
from spikelab.totals import success_share
from spikelab.units import show_seconds

_COLOURS: dict[Outcome, str] = {
    "held": "green",
    "failed": "red",
    "inconclusive": "yellow",
    "not reached": "yellow",
}


def show_rates(
    variants: dict[str, Rates], answers: dict[str, HeldRates], predicted: Mapping[str, float]
) -> None:
    """Figures of several repeats stand side by side, in their order.

    `predicted`: requests/s by variant, of those that have a prediction.
    """
    table = Table(box=None, pad_edge=False)
    table.add_column("variant")
    for name in ("offered/s", "started/s", "achieved/s", "success", "p95"):
        table.add_column(name, justify="right")
    table.add_column("outcome")
    for variant, rates in variants.items():
        for rate, repeats in rates.items():
            table.add_row(variant, f"{rate:,.15g}", *_cells(repeats))
    out.print(table)
    for variant, answer in answers.items():
        out.print(f"{variant or 'it'}: {held_sentence(answer, predicted.get(variant))}")


def _cells(repeats: Sequence[Step]) -> list[str | Text]:
    def side_by_side(figure: Callable[[Step], str]) -> str:
        return " | ".join(figure(step) for step in repeats)

    found = outcome(repeats)
    return [
        side_by_side(lambda step: f"{step.started_rate or 0:,.1f}"),
        side_by_side(lambda step: f"{step.achieved_rate or 0:,.1f}"),
        side_by_side(_success),
        # As printed, which is what a reader has before them; objectives count failures as well.
        side_by_side(lambda step: show_seconds(step.latency_seconds.p95)),
        Text(found, style=_COLOURS[found]),
    ]


def _success(step: Step) -> str:
    """Never rounded up to 100 %."""
    share = success_share(step.requests, step.failures, step.dropped) or 0.0
    return f"{int(share * 1e5) / 1e3:.6g}%"


def held_sentence(answer: HeldRates, predicted: float | None = None) -> str:
    """What a variant holds, and is predicted to: ``holds 600/s; fails at 850/s``."""
    highest, lowest = answer.highest_passing_rate, answer.lowest_failing_rate
    parts = [
        "holds no tested rate" if highest is None else f"holds {highest:,}/s",
        "no tested rate failed" if lowest is None else f"fails at {lowest:,}/s",
    ]
    for name, rates in (
        ("inconclusive", answer.inconclusive),
        ("not reached", answer.not_reached),
    ):
        if rates:
            parts.append(f"{name} at {', '.join(f'{rate:,}/s' for rate in rates)}")
    if predicted is not None:
        parts.append(rate_text(predicted))
    return "; ".join(parts)
