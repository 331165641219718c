"""Which of the tested rates a service holds: from judged steps, several repeats a rate."""

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Literal

from pydantic import BaseModel, ConfigDict

from spikelab.judge import started_enough
from spikelab.record import Step, Verdict
from spikelab.statistics.repeats import over_repeats

Outcome = Literal["held", "failed", "inconclusive", "not reached"]
_OUTCOMES: dict[Verdict, Outcome] = {
    "pass": "held",
    "fail": "failed",
    "inconclusive": "inconclusive",
}
# Steps by offered rate, in requests/s.
Rates = dict[float, list[Step]]


class HeldRates(BaseModel):
    """Offered requests/s. Every tested rate up to `highest_passing_rate` was held; null: not even
    the lowest was. `lowest_failing_rate` is null where none failed."""

    model_config = ConfigDict(extra="forbid")

    highest_passing_rate: int | float | None
    lowest_failing_rate: int | float | None
    inconclusive: list[int | float]
    not_reached: list[int | float]


def by_variant(steps: Iterable[Step]) -> dict[str, Rates]:
    """Variant (empty where there is none) to steps by rate, ascending. Closed loops have no rate
    and are left out."""
    found: dict[str, Rates] = {}
    for step in steps:
        if step.offered_rate is not None:
            rates = found.setdefault(step.variant or "", {})
            rates.setdefault(step.offered_rate, []).append(step)
    return {variant: dict(sorted(rates.items())) for variant, rates in sorted(found.items())}


def outcome(repeats: Sequence[Step]) -> Outcome:
    """Of the repeats of one rate. A rate that one of them did not reach was not tested, whatever
    the others did; without that they have to agree."""
    if not all(started_enough(step) for step in repeats):
        return "not reached"
    return _OUTCOMES[over_repeats([step.verdict for step in repeats], needed=len(repeats))]


def held_rates(rates: Rates) -> HeldRates:
    """The judgement on one variant."""
    outcomes = {_plain(rate): outcome(rates[rate]) for rate in sorted(rates)}
    held = list(takewhile(lambda rate: outcomes[rate] == "held", outcomes))

    def those(wanted: Outcome) -> list[int | float]:
        return [rate for rate, found in outcomes.items() if found == wanted]

    return HeldRates(
        highest_passing_rate=held[-1] if held else None,
        lowest_failing_rate=next(iter(those("failed")), None),
        inconclusive=those("inconclusive"),
        not_reached=those("not reached"),
    )


def _plain(rate: float) -> int | float:
    return int(rate) if rate == int(rate) else rate
