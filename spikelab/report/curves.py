"""Steps as curves over their offered rates: what are repeats of one rate, and what is not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spikelab.experiments.sweep import only_rates_differ
from spikelab.held_rates import Rates, by_variant
from spikelab.record import RunRecord


@dataclass(frozen=True)
class Curves:
    """Steps by rate, of each variant, of each phase, or of both together: `of` says which, and is
    empty where there is one curve without a name."""

    of: str
    rates: Mapping[str, Rates]

    @property
    def several_rates(self) -> bool:
        return any(len(tried) > 1 for tried in self.rates.values())


def curves(records: Sequence[RunRecord]) -> Curves | None:
    """None where runs differ in something else than rates and phases: they are no repeats, and
    stand each for itself."""
    if only_rates_differ(records):
        variants = by_variant(step for record in records for step in record.steps)
        return Curves("variant" if any(variants) else "", variants)
    found: dict[str, Rates] = {}
    named = False
    for phase, own in _by_phase(records).items():
        if not only_rates_differ(own):
            return None
        for variant, rates in by_variant(step for record in own for step in record.steps).items():
            named |= bool(variant)
            found[" ".join(filter(None, (variant, phase)))] = rates
    return Curves("variant and phase" if named else "phase", found) if found else None


def _by_phase(records: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    """The records as if each phase had been their only one."""
    return {
        phase: [
            record.model_copy(update={"steps": [s for s in record.steps if s.phase == phase]})
            for record in records
        ]
        for phase in dict.fromkeys(step.phase for record in records for step in record.steps)
    }
