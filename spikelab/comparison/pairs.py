"""Which run of A is compared with which of B: those of the same place and the same repeat."""

from collections.abc import Sequence
from dataclasses import dataclass

from spikelab.comparison.arms import Arm, Sample
from spikelab.comparison.places import VARIANT, Place, key, show
from spikelab.errors import UsageError

_MOST_NAMED = 6


@dataclass(frozen=True)
class RunPair:
    """A's run and B's of one repeat; None: there is none. With `trouble` it gives no figures."""

    repeat: int
    a: Sample | None
    b: Sample | None

    @property
    def trouble(self) -> list[str]:
        found = []
        for name, sample in (("A", self.a), ("B", self.b)):
            if sample is None:
                found.append(f"{name} has no such run")
            elif sample.trouble:
                found.append(f"{name}, {sample.record.testid}: {sample.trouble}")
        return found


@dataclass(frozen=True)
class Paired:
    """All pairs of one place, by repeat."""

    place: Place
    pairs: tuple[RunPair, ...]

    @property
    def both(self) -> int:
        """How many of them have a run on either side."""
        return sum(pair.a is not None and pair.b is not None for pair in self.pairs)


def pair_up(a: Arm, b: Arm) -> list[Paired]:
    """By place, in A's order; places of one side alone are left out. Raises UsageError."""
    if a.name == b.name:
        raise UsageError(f"{a.name}: A and B are the same")
    ours_of, theirs_of = ({sample.record.testid for sample in arm.samples} for arm in (a, b))
    if ours_of & theirs_of:
        raise UsageError(f"{a.name} and {b.name} have runs in common: name two different things")
    ours, theirs = _by_place(a), _by_place(b)
    common = [place for place in ours if place in theirs]
    if not common:
        _refuse(a, b)
    return [
        Paired(
            next(iter(ours[place].values())).place,
            tuple(
                RunPair(repeat, ours[place].get(repeat), theirs[place].get(repeat))
                for repeat in sorted({*ours[place], *theirs[place]})
            ),
        )
        for place in common
    ]


def interleaved(a: Arm, b: Arm) -> bool | None:
    """Whether the lab took A's and B's runs in turn; None for imported ones: it cannot know."""
    if not a.experiment or a.experiment != b.experiment:
        return False
    return None if a.order is None else True


def notes(a: Arm, b: Arm) -> list[str]:
    """What a reader has to know about the pairs, a line each."""
    found = []
    if a.plan != b.plan:
        found.append(f"A is of the plan {a.plan}, B of {b.plan}")
    match interleaved(a, b):
        case None:
            found.append("imported runs: whether A's and B's were taken in turn is not known")
        case False:
            found.append(
                "A's and B's runs were not interleaved: what changed on the machine between them "
                "is part of the difference"
            )
    if a.order == "as-written" and interleaved(a, b):
        found.append("A ran before B in every repeat (order: as-written)")
    for name, one, other in (("A", a, b), ("B", b, a)):
        there = _by_place(other)
        alone = [show(found[1].place) for found in _firsts(one) if found[0] not in there]
        if alone:
            more = ", …" if len(alone) > _MOST_NAMED else ""
            found.append(f"only {name} was run at {', '.join(alone[:_MOST_NAMED])}{more}")
    return found


_ByPlace = dict[tuple[tuple[str, str], ...], dict[int, Sample]]


def _by_place(arm: Arm) -> _ByPlace:
    found: _ByPlace = {}
    for sample in arm.samples:
        found.setdefault(key(sample.place), {})[sample.repeat] = sample
    return found


def _firsts(arm: Arm) -> Sequence[tuple[tuple[tuple[str, str], ...], Sample]]:
    return [(place, next(iter(samples.values()))) for place, samples in _by_place(arm).items()]


def _refuse(a: Arm, b: Arm) -> None:
    for one, other in ((a, b), (b, a)):
        variants = [s.place[VARIANT] for s in one.samples if VARIANT in s.place]
        if variants and not any(VARIANT in sample.place for sample in other.samples):
            names = ", ".join(f"{one.name}:{name}" for name in dict.fromkeys(variants))
            raise UsageError(f"{one.name} has several variants: say which one: {names}")
    raise UsageError(
        f"{a.name} and {b.name} have no place in common: A was run at {_shown(a)}, B at {_shown(b)}"
    )


def _shown(arm: Arm) -> str:
    return ", ".join(show(sample.place) or "no swept value" for _, sample in _firsts(arm))
