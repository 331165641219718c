"""Predicted beside measured: each figure of a run's prediction, and whether it is within its
tolerance."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from spikelab.record import Prediction, RunRecord, Step
from spikelab.units import show_seconds

# Failures of another kind than predicted: 3 resets of 10,000 users were seen whose cause we do not
# know (docs/connections.md, section 3).
STRAY_SHARE = 0.001


@dataclass(frozen=True)
class Check:
    """One figure: `within` is whether it is as predicted, None where it was not measured."""

    name: str
    predicted: str
    measured: str
    within: bool | None

    @property
    def text(self) -> str:
        """``8,293 (8,293)``: measured, and in brackets predicted."""
        return f"{self.measured or 'unknown'} ({self.predicted})"


def checks(record: RunRecord) -> list[Check]:
    """Of a run with a prediction and its one step; else none."""
    if record.prediction is None or len(record.steps) != 1:
        return []
    return list(_checks(record.prediction, record.steps[0], record.connections.established_peak))


def within(record: RunRecord) -> bool:
    """Whether all that was measured is as predicted."""
    return all(check.within is not False for check in checks(record))


def as_predicted(spikes: Sequence[RunRecord]) -> str:
    """How many of them came so, in words."""
    return f"{sum(map(within, spikes))} of {len(spikes)} runs came as predicted"


def predicted_rates(records: Iterable[RunRecord]) -> dict[str, float]:
    """Requests/s by variant (empty without one), where all of its runs have the same prediction."""
    found: dict[str, set[float]] = {}
    unknown = set()
    for record in records:
        for variant in {step.variant or "" for step in record.steps}:
            if record.predicted_rate is None:
                unknown.add(variant)
            else:
                found.setdefault(variant, set()).add(record.predicted_rate)
    return {
        variant: max(rates)
        for variant, rates in found.items()
        if len(rates) == 1 and variant not in unknown
    }


def predicted_capacity(parameter: str, records: Iterable[RunRecord]) -> list[str]:
    """Of a search over this parameter, in words; none where there is no prediction of it."""
    rates = predicted_rates(records) if parameter == "rate" else {}
    return [rate_text(rate) for rate in rates.values()]


def rate_text(rate: float) -> str:
    """``400/s predicted from threads and service time``"""
    return f"{rate:,.6g}/s predicted from threads and service time"


def _checks(expected: Prediction, step: Step, established: int | None) -> Iterator[Check]:
    yield Check(
        "established",
        _range(expected.established_least, expected.established_most),
        "" if established is None else f"{established:,}",
        None
        if established is None
        else expected.established_least <= established <= expected.established_most,
    )
    good = step.requests - step.failures
    yield Check(
        "good",
        _range(expected.good_least, expected.good_most),
        f"{good:,}",
        expected.good_least <= good <= expected.good_most,
    )
    yield _last_answer(expected, step, good)
    counts = step.errors.by_class()
    strays = sum(n for name, n in counts.items() if name not in expected.failure_classes)
    yield Check(
        "failures",
        " or ".join(expected.failure_classes) or "none",
        ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "none",
        strays <= STRAY_SHARE * step.requests,
    )


def _last_answer(expected: Prediction, step: Step, good: int) -> Check:
    """Since the start of the users: of good answers alone, which raw samples tell where some
    failed."""
    least, most = expected.last_answer_least_seconds, expected.last_answer_most_seconds
    shown = "no good answer" if least is None else f"{show_seconds(least)} to {show_seconds(most)}"
    measured = last_good_seconds(step, good)
    if measured is None or least is None or most is None:
        # Without raw samples the last answer of a run with failures is not known.
        return Check("last answer", shown, "" if good else "no good answer", None)
    return Check("last answer", shown, show_seconds(measured), least <= measured <= most)


def last_good_seconds(step: Step, good: int) -> float | None:
    """When the last good answer came, in seconds since the start; None where that is not known."""
    if step.last_good_seconds is not None:
        return step.last_good_seconds
    if good and not step.failures:
        return (step.ended - step.started).total_seconds()
    return None


def _range(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"
