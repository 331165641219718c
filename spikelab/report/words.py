"""Figures in words, the same in every format."""

from collections.abc import Mapping, Sequence

from spikelab.comparison.places import show as show_place
from spikelab.record import RunRecord, Step
from spikelab.totals import success_share
from spikelab.units import show_seconds

NONE = "–"


def count(number: float | None) -> str:
    return NONE if number is None else f"{number:,.0f}"


def rate(number: float | None) -> str:
    """Four digits, plain.

    >>> rate(1234.5), rate(99.87), rate(None)
    ('1,234', '99.9', '–')
    """
    if number is None:
        return NONE
    return f"{number:,.1f}".removesuffix(".0") if number < 1000 else f"{number:,.0f}"


def share(part: float | None) -> str:
    """Never rounded up to 100 %.

    >>> share(1.0), share(0.99999999), share(0.5)
    ('100 %', '99.999 %', '50 %')
    """
    if part is None:
        return NONE
    return f"{int(part * 1e5 + 1e-6) / 1e3:.5g} %" if part < 1 else "100 %"


def seconds(number: float | None) -> str:
    """A percentile without a value is none, not infinite: there was no good answer."""
    return NONE if number is None else show_seconds(number)


def cores(number: float | None) -> str:
    return NONE if number is None else f"{number:.2f}"


def listed(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def plural(number: int, one: str) -> str:
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"


def joined(words: Sequence[str]) -> str:
    """``a, b and c``"""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""


def variant_of(record: RunRecord) -> str:
    return next((step.variant for step in record.steps if step.variant), "")


def cell_of(record: RunRecord, step: Step) -> str:
    """What a step was run with: variant, values, and its own name where a run has several."""
    parts = [step.variant or "", show_place(record.values)]
    if len(record.steps) > 1 or (step.offered_rate is not None and not record.values):
        parts.append(step.name)
    return " ".join(filter(None, parts)) or step.name


def run_of(record: RunRecord) -> str:
    """What a whole run was made with: as `cell_of`, without the names of several steps."""
    if len(record.steps) == 1:
        return cell_of(record, record.steps[0])
    parts = [variant_of(record), show_place(record.values)]
    return " ".join(filter(None, parts)) or record.testid


def success(step: Step) -> float | None:
    """Share of the requests that were due, dropped ones included, that got a good answer."""
    return success_share(step.requests, step.failures, step.dropped)


def throughput(step: Step) -> float | None:
    """Good answers a second, over the step's window and drain."""
    seconds = (step.ended - step.started).total_seconds()
    return (step.requests - step.failures) / seconds if seconds > 0 else None
