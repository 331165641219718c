"""A and B of a comparison: what they are by name, their runs, and which run meets which.

A name on the command line is a run, an experiment, ``EXPERIMENT:variant`` or the plan's
``baseline``; the first letters of a name are enough where no other begins so. Runs of A and B make
a pair where they are of the same place in their experiments, such as ``rate=600``, and of the same
repeat.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from spikelab import paths
from spikelab.errors import UsageError, did_you_mean
from spikelab.judge import driver_doubt
from spikelab.objectives import parse_objective
from spikelab.plans.load import plan_files
from spikelab.results.experiment import ExperimentState
from spikelab.results.files import write_json
from spikelab.results.lookup import find_folder
from spikelab.results.run import RunRecord, Scalar, Step

# By name: swept parameters, and `phase` or `variant` where that alone tells two steps apart.
Place = Mapping[str, Scalar]
PHASE = "phase"
VARIANT = "variant"
BASELINE = "baseline"
_MOST_PLACES_NAMED = 6


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
    `digest`: of what its runs measure; None where that is not known. `rivals`: with how many arms
    of its experiment one of them can be compared. `unfinished`: runs of it are still to come.
    """

    name: str
    plan: str
    experiment: str | None
    variant: str | None
    samples: tuple[Sample, ...]
    order: str | None = None
    digest: str | None = None
    rivals: int = 1
    unfinished: bool = False

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
    if record.imported or step.verdict != "inconclusive":
        return None
    # Its load was not the one that was asked for, so neither are its figures. A step can be
    # inconclusive for other reasons, such as too few requests for an objective: it is compared all
    # the same. Of schema 1, which does not say why, nothing else made a step inconclusive.
    doubt = driver_doubt(step, [parse_objective(text) for text in step.slo])
    return doubt or (None if step.why else "the driver was behind its schedule")


def _only(place: Place, name: str) -> Place:
    return {name: place[name]} if name in place else {}


def variants_of(records: Iterable[RunRecord]) -> list[str]:
    """The names of the variants that were run, in the order of their first runs."""
    found = (step.variant for record in records for step in record.steps)
    return list(dict.fromkeys(name for name in found if name))


def arm_of_state(state: ExperimentState, variant: str | None = None) -> Arm:
    """An experiment's runs as its state lists them, also those that were no result.

    Raises UsageError.
    """
    records = []
    for cell in state.cells:
        testid = cell.testid or next(reversed(cell.attempts), None)
        if testid is not None and (record := RunRecord.read(testid)) is not None and record.steps:
            records.append(record)
    if not records:
        raise UsageError(f"{state.experiment}: none of its runs has figures")
    known = variants_of(records)
    if variant is not None and variant not in known:
        cure = did_you_mean(variant, known) if known else " (it has no variants)"
        raise UsageError(f"{state.experiment} has no variant '{variant}'{cure}")
    # Of an import it is the order of its files.
    order = None if records[0].imported else state.order
    return replace(
        arm_of_experiment(state.experiment, records, variant, order),
        digest=state.arms.get(variant or ""),
        rivals=max(1, len({cell.variant for cell in state.cells}) - 1),
    )


def find_arm(name: str) -> Arm:
    """The arm of that name. Raises UsageError when there is none, or more than one."""
    base, colon, variant = name.partition(":")
    folder = find_folder(base, (ExperimentState.FILE, RunRecord.FILE), also=plan_files())
    found = folder.name
    if (folder / ExperimentState.FILE).exists():
        state = ExperimentState.read(found)
        if state is None:
            raise UsageError(f"{paths.shown(folder / ExperimentState.FILE)}: cannot be read")
        # One that went on without a valid run of some cell has its answer.
        unfinished = state.state != "finished" and state.answer is None
        return replace(arm_of_state(state, variant if colon else None), unfinished=unfinished)
    record = RunRecord.read(found)
    if record is None or not record.steps:
        why = "; ".join(record.reasons) if record else "its record cannot be read"
        raise UsageError(f"{found}: there is nothing to compare: {why}")
    if colon:
        raise UsageError(f"{name}: {found} is a single run, which has no variants to choose from")
    return arm_of_run(record)


def mark_baseline(name: str) -> Arm:
    """Makes this the reference of its plan, instead of another. Raises UsageError."""
    arm = find_arm(name)
    write_json(_marks_file(), {**baselines(), arm.plan: arm.name})
    return arm


def baselines() -> dict[str, str]:
    """By plan, the name of its reference. Raises UsageError."""
    try:
        found = json.loads(_marks_file().read_bytes())
        return {str(plan): str(name) for plan, name in found.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError) as error:
        file = paths.shown(_marks_file())
        raise UsageError(f"{file}: this is no list of baselines: remove it") from error


def two_arms(names: Sequence[str]) -> tuple[Arm, Arm]:
    """A and B by their names; of one name alone, A is the baseline of its plan.

    Raises UsageError.
    """
    a, b = names if len(names) == 2 else (BASELINE, names[0])
    if b == BASELINE:
        arm = find_arm(a)
        return arm, _baseline_for(arm)
    arm = find_arm(b)
    return (_baseline_for(arm) if a == BASELINE else find_arm(a)), arm


def _baseline_for(arm: Arm) -> Arm:
    marked = baselines().get(arm.plan)
    if marked is not None:
        return find_arm(marked)
    cure = "mark one with ./lab compare --baseline ID"
    variants = variants_of(arm.records)
    if len(variants) > 1:
        names = " ".join(f"{arm.name}:{variant}" for variant in variants[:2])
        cure += f", or compare its variants: ./lab compare {names}"
    raise UsageError(f"plan {arm.plan} has no baseline: {cure}")


def _marks_file() -> Path:
    return paths.RESULTS / "baseline.json"


def show_place(place: Place) -> str:
    """``rate=600 phase=steady``; empty for the only place there is."""
    return " ".join(f"{name}={_plain(value)}" for name, value in place.items())


def parse_place(assignments: Iterable[tuple[str, str]]) -> Place:
    """A place as a user writes it: numbers are numbers, whatever their form."""
    found: dict[str, Scalar] = {}
    for name, text in assignments:
        try:
            found[name] = float(text)
        except ValueError:
            found[name] = text
    return found


def _plain(value: Scalar) -> Scalar:
    if isinstance(value, bool):
        return str(value).lower()
    return int(value) if isinstance(value, float) and value.is_integer() else value


def place_key(place: Place) -> tuple[tuple[str, str], ...]:
    """What makes two places the same: 600 and 600.0 are."""
    return tuple(sorted((name, str(_plain(value))) for name, value in place.items()))


def primary_place(places: Sequence[Place], asked: Place) -> Place:
    """The one that decides. Raises UsageError listing what there is to choose from."""
    wanted = set(place_key(asked))
    matching = [place for place in places if wanted <= set(place_key(place))]
    if len(matching) == 1:
        return matching[0]
    choices = "; ".join(f"--at {_values(places, name)}" for name in _names(places))
    if not matching:
        raise UsageError(
            f"--at {show_place(asked)}: A and B were not both run there"
            + (f": {choices}" if choices else ": leave it out, nothing was swept")
        )
    raise UsageError(
        f"A and B were run at {len(matching)} places, and one of them must decide: {choices}"
        " (or compare.at in the plan)"
    )


def _names(places: Iterable[Place]) -> list[str]:
    return list(dict.fromkeys(name for place in places for name in place))


def _values(places: Iterable[Place], name: str) -> str:
    values = dict.fromkeys(str(_plain(place[name])) for place in places if name in place)
    return f"{name}={'|'.join(values)}"


@dataclass(frozen=True)
class RunPair:
    """A's run and B's of one repeat; None: there is none. With `trouble` it gives no figures.
    `apart`: of runs that were taken in turn these two were not, since one was run again later."""

    repeat: int
    a: Sample | None
    b: Sample | None
    apart: bool = False

    @property
    def trouble(self) -> list[str]:
        found = ["runs of other repeats came between A's and B's"] if self.apart else []
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
    in_turn = interleaved(a, b) is True
    return [
        Paired(
            next(iter(ours[place].values())).place,
            tuple(_pairs(ours[place], theirs[place], in_turn)),
        )
        for place in common
    ]


def _pairs(
    ours: Mapping[int, Sample], theirs: Mapping[int, Sample], in_turn: bool
) -> Iterator[RunPair]:
    starts = sorted(each.record.started for each in (*ours.values(), *theirs.values()))
    for repeat in sorted({*ours, *theirs}):
        a, b = ours.get(repeat), theirs.get(repeat)
        apart = False
        if in_turn and a and b:
            first, last = sorted((a.record.started, b.record.started))
            apart = bisect_left(starts, last) > bisect_right(starts, first)
        yield RunPair(repeat, a, b, apart)


def interleaved(a: Arm, b: Arm) -> bool | None:
    """Whether the lab took A's and B's runs in turn; None for imported ones: it cannot know."""
    if not a.experiment or a.experiment != b.experiment:
        return False
    return None if a.order is None else True


def no_verdict(a: Arm, b: Arm, paired: Sequence[Paired], declared: bool) -> str | None:
    """Why A and B are only set side by side; None where a verdict is due. `declared`: the user says
    that imported runs were taken in turn. Raises UsageError where the lab knows better."""
    in_turn = interleaved(a, b)
    if declared and in_turn is False:
        raise UsageError(
            "--interleaved: this is for imported runs; the lab knows of its own that A's and B's "
            "were not taken in turn"
        )
    if not any(place.both > 1 for place in paired):
        what = "two single runs" if a.single and b.single else "one run a side at each place"
        return (
            f"{what} cannot tell a difference from the machine's own changes from run to run; "
            "./lab compare PLAN runs its variants in turn, six times each or more"
        )
    if in_turn is False:
        return (
            "A's and B's runs were not taken in turn, so what changed on the machine between them "
            "would count as a difference; ./lab compare PLAN runs its variants in turn"
        )
    if in_turn is None and not declared:
        return (
            "whether A's and B's imported runs were taken in turn is not known; --interleaved says "
            "that they were"
        )
    if a.unfinished or b.unfinished:
        return (
            f"{a.experiment} is not finished, and looking early makes false verdicts likelier; "
            "the command that began it goes on with it, and looks of a plan (compare.looks) can "
            "end it early"
        )
    first = _always_first(paired) if a.order == "as-written" else None
    if first:
        return (
            f"{first} ran first in every pair (order: as-written), so a drift would count as a "
            "difference; the orders abba and blocks change it"
        )
    return None


def _always_first(paired: Sequence[Paired]) -> str | None:
    """A or B, where all of its runs were begun before those that they are compared with."""
    firsts = {
        "A" if pair.a.record.started < pair.b.record.started else "B"
        for place in paired
        for pair in place.pairs
        if pair.a and pair.b
    }
    return firsts.pop() if len(firsts) == 1 else None


def latency_bases(a: Arm, b: Arm) -> list[str]:
    """Which figures the latencies of their runs are, each once."""
    return list(dict.fromkeys(record.latency_basis for arm in (a, b) for record in arm.records))


def notes(a: Arm, b: Arm) -> list[str]:
    """What a reader has to know about the pairs, a line each."""
    found = []
    if a.plan != b.plan:
        found.append(f"A is of the plan {a.plan}, B of {b.plan}")
    for name, one, other in (("A", a, b), ("B", b, a)):
        there = _by_place(other)
        alone = [show_place(found[1].place) for found in _firsts(one) if found[0] not in there]
        if alone:
            more = ", …" if len(alone) > _MOST_PLACES_NAMED else ""
            found.append(f"only {name} was run at {', '.join(alone[:_MOST_PLACES_NAMED])}{more}")
    return found


_ByPlace = dict[tuple[tuple[str, str], ...], dict[int, Sample]]


def _by_place(arm: Arm) -> _ByPlace:
    found: _ByPlace = {}
    for sample in arm.samples:
        found.setdefault(place_key(sample.place), {})[sample.repeat] = sample
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
    return ", ".join(show_place(sample.place) or "no swept value" for _, sample in _firsts(arm))
