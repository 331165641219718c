"""What a name on the command line means: a run, an experiment, ``EXPERIMENT:variant``, or the
plan's ``baseline``; the beginning of a name is enough where there is no other like it."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from spikelab import paths
from spikelab.comparison.arms import Arm, arm_of_experiment, arm_of_run, variants_of
from spikelab.errors import UsageError, did_you_mean
from spikelab.experiments.state import FILE, ExperimentState, read_state
from spikelab.plans.load import plan_files
from spikelab.record import RunRecord, read_record, write_json

BASELINE = "baseline"
_MOST_NAMED = 5


def find(name: str) -> Arm:
    """The arm of that name. Raises UsageError when there is none, or more than one."""
    base, colon, variant = name.partition(":")
    runs = _folders("run.json")
    states = _folders(FILE)
    found = _matching(base, [*states, *runs])
    if found is None:
        known = [*states, *runs, *plan_files()]
        raise UsageError(f"there is no run and no experiment '{base}'{_near(base, known)}")
    if found in states:
        return _of_state(found, variant if colon else None)
    record = read_record(found)
    if record is None or not record.steps:
        why = "; ".join(record.reasons) if record else "its record cannot be read"
        raise UsageError(f"{found}: there is nothing to compare: {why}")
    if colon:
        raise UsageError(f"{name}: {found} is a single run, which has no variants to choose from")
    return arm_of_run(record)


def arm_of_state(state: ExperimentState, variant: str | None = None) -> Arm:
    """An experiment's runs as its state lists them, also those that were no result.

    Raises UsageError.
    """
    records = []
    for cell in state.cells:
        testid = cell.testid or next(reversed(cell.attempts), None)
        if testid is not None and (record := read_record(testid)) is not None and record.steps:
            records.append(record)
    return _of_records(state.experiment, records, variant, state.order)


def _of_state(name: str, variant: str | None) -> Arm:
    state = read_state(name)
    if state is None:
        raise UsageError(f"{paths.shown(paths.RESULTS / name / FILE)}: cannot be read")
    return arm_of_state(state, variant)


def _of_records(name: str, records: Sequence[RunRecord], variant: str | None, order: str) -> Arm:
    if not records:
        raise UsageError(f"{name}: none of its runs has figures")
    known = variants_of(records)
    if variant is not None and variant not in known:
        cure = did_you_mean(variant, known) if known else " (it has no variants)"
        raise UsageError(f"{name} has no variant '{variant}'{cure}")
    # Of an import it is the order of its files.
    return arm_of_experiment(name, records, variant, None if records[0].imported else order)


def _matching(name: str, names: Iterable[str]) -> str | None:
    """The name itself, or the only one that begins so. Raises UsageError for several."""
    known = list(dict.fromkeys(names))
    if name in known:
        return name
    beginning = [each for each in known if name and each.startswith(name)]
    if len(beginning) > 1:
        more = ", …" if len(beginning) > _MOST_NAMED else ""
        raise UsageError(
            f"'{name}' is the beginning of {len(beginning)} names: write more of it "
            f"({', '.join(beginning[:_MOST_NAMED])}{more})"
        )
    return beginning[0] if beginning else None


def _near(name: str, known: Sequence[str]) -> str:
    near = did_you_mean(name, known) if known else ""
    return near if near.startswith(" (did") else ": ./lab runs lists what there is"


def _folders(file: str) -> list[str]:
    return [path.parent.name for path in sorted(paths.RESULTS.glob(f"*/{file}"), reverse=True)]


def mark_baseline(name: str) -> Arm:
    """Makes this the reference of its plan, instead of another. Raises UsageError."""
    arm = find(name)
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
        arm = find(a)
        return arm, _baseline_for(arm)
    arm = find(b)
    return (_baseline_for(arm) if a == BASELINE else find(a)), arm


def _baseline_for(arm: Arm) -> Arm:
    marked = baselines().get(arm.plan)
    if marked is not None:
        return find(marked)
    cure = "mark one with ./lab compare --baseline ID"
    variants = variants_of(arm.records)
    if len(variants) > 1:
        names = " ".join(f"{arm.name}:{variant}" for variant in variants[:2])
        cure += f", or compare its variants: ./lab compare {names}"
    raise UsageError(f"plan {arm.plan} has no baseline: {cure}")


def _marks_file() -> Path:
    return paths.RESULTS / "baseline.json"
