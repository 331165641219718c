"""One side of a comparison: what was measured where, in which repeat, and what spoils it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from spikelab.comparison.places import PHASE, VARIANT, Place
from spikelab.plans.values import Scalar
from spikelab.record import RunRecord, Step


@dataclass(frozen=True)
class Sample:
    """One judged step of one run. `trouble`: why it is no measurement."""

    place: Place
    repeat: int
    record: RunRecord
    step: Step
    trouble: str | None = None


@dataclass(frozen=True)
class Arm:
    """A or B. `experiment` is None for a single run; `variant` where it is one of several.

    `order`: in which the experiment took its variants; None where the lab did not run it.
    """

    name: str
    plan: str
    experiment: str | None
    variant: str | None
    samples: tuple[Sample, ...]
    order: str | None = None

    @property
    def single(self) -> bool:
        return len({sample.record.testid for sample in self.samples}) == 1

    @property
    def records(self) -> list[RunRecord]:
        """Its runs, each once, in the order of the samples."""
        return list({sample.record.testid: sample.record for sample in self.samples}.values())


def arm_of_run(record: RunRecord) -> Arm:
    """A single run, whatever experiment it belongs to: its place and repeat are then its own."""
    samples = tuple(
        replace(sample, repeat=1, place=_only(sample.place, PHASE)) for sample in samples_of(record)
    )
    return Arm(record.testid, record.plan, None, None, samples)


def arm_of_experiment(
    name: str,
    records: Sequence[RunRecord],
    variant: str | None = None,
    order: str | None = None,
) -> Arm:
    """All runs of an experiment, or those of one variant; without one, a place names its own."""
    variants = dict.fromkeys(step.variant for record in records for step in record.steps)
    samples = [sample for record in records for sample in samples_of(record)]
    if variant is not None:
        samples = [sample for sample in samples if sample.step.variant == variant]
    elif len(variants) > 1:
        samples = [
            replace(sample, place={**sample.place, VARIANT: sample.step.variant or ""})
            for sample in samples
        ]
    shown = name if variant is None else f"{name}:{variant}"
    return Arm(shown, records[0].plan, name, variant, tuple(samples), order)


def samples_of(record: RunRecord) -> Iterator[Sample]:
    """The judged steps of a run. One of an import has its rate for a place."""
    for step in record.steps:
        place: dict[str, Scalar] = dict(record.values)
        if record.imported and step.offered_rate is not None:
            place["rate"] = step.offered_rate
        if len(record.steps) > 1:
            place[PHASE] = step.name
        yield Sample(place, step.repeat, record, step, _trouble(record, step))


def _trouble(record: RunRecord, step: Step) -> str | None:
    if not record.valid:
        return "invalid: " + "; ".join(record.reasons)
    limited = step.generator.limited
    if limited or (limited is None and record.generator.limited):
        return "the driver was the limit of this run"
    if step.verdict == "inconclusive" and not record.imported:
        # Its load was not the one that was asked for, so neither are its figures.
        return "the driver was behind its schedule"
    return None


def _only(place: Place, name: str) -> Place:
    return {name: place[name]} if name in place else {}


def variants_of(records: Iterable[RunRecord]) -> list[str]:
    """The names of the variants that were run, in the order of their first runs."""
    found = (step.variant for record in records for step in record.steps)
    return list(dict.fromkeys(name for name in found if name))
