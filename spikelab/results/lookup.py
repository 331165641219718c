"""Results by name: the folder that a name or its beginning means, and what a report is about."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from spikelab import paths
from spikelab.errors import UsageError
from spikelab.results.comparison import ComparisonRecord
from spikelab.results.experiment import ExperimentState
from spikelab.results.run import RunRecord, Step

SubjectKind = Literal["run", "runs", "sweep", "capacity", "comparison"]
_FILES = (ExperimentState.FILE, ComparisonRecord.FILE, RunRecord.FILE)
_MOST_NAMED = 5
_TIME = re.compile(r"^\d{8}T\d{6}Z-")
_DIGITS = re.compile(r"-[0-9a-f]{4,12}$")


@dataclass(frozen=True)
class Subject:
    """A run, several runs of one plan, a sweep, a capacity search or a comparison.

    `records` are its runs that count, in their order; `spoiled` those that were no result.
    """

    name: str
    kind: SubjectKind
    folder: Path
    records: tuple[RunRecord, ...]
    spoiled: tuple[RunRecord, ...] = ()
    state: ExperimentState | None = None
    comparison: ComparisonRecord | None = None

    @property
    def steps(self) -> list[Step]:
        """The judged steps of its runs that count."""
        return [step for record in self.records for step in record.steps]

    @property
    def plan(self) -> str:
        for known in (self.state, self.comparison):
            if known:
                return known.plan
        return self.records[0].plan if self.records else self.name

    @property
    def slo(self) -> list[str]:
        """The objectives, without repetition; of a run's phases all together."""
        return list(dict.fromkeys(text for step in self.steps for text in step.slo))


def find(name: str | None = None) -> Subject:
    """By name or a beginning that only one has; without a name what was written last.

    Raises UsageError, which says what is near.
    """
    return _read(find_folder(name))


def find_folder(
    name: str | None = None, files: Sequence[str] = _FILES, also: Iterable[str] = ()
) -> Path:
    """The folder under results/ of that name, or the only one whose name begins so; without a name
    the one that was written last. It holds one of these files.

    Raises UsageError, which says what is near: of `also`, what else could have been meant.
    """
    folders = {
        path.parent.name: path.parent for f in files for path in paths.RESULTS.glob(f"*/{f}")
    }
    newest = sorted(folders, key=lambda each: _written(folders[each]), reverse=True)
    if name is None and newest:
        return folders[newest[0]]
    if name in folders:
        return folders[name]
    beginning = [each for each in newest if name and each.startswith(name)]
    if len(beginning) == 1:
        return folders[beginning[0]]
    if beginning:
        named = ", ".join(beginning[:_MOST_NAMED]) + (", …" if len(beginning) > _MOST_NAMED else "")
        raise UsageError(
            f"'{name}' is the beginning of {len(beginning)} names: write more of it ({named})"
        )
    near = _near(name or "", [*newest, *also])
    if not newest and not near:
        raise UsageError("there are no results yet: ./lab run PLAN makes some")
    newest_named = f" (newest: {', '.join(newest[:_MOST_NAMED])})" if newest else ""
    raise UsageError(
        f"there is no run or experiment '{name}'{near or newest_named}: see ./lab runs"
    )


def _near(name: str, known: Sequence[str]) -> str:
    """What is like it, also without the time in front and the digits behind; empty for nothing."""
    called: dict[str, str] = {}
    for each in known:
        for short in (each, _TIME.sub("", each), _DIGITS.sub("", _TIME.sub("", each))):
            called.setdefault(short, each)
    near = get_close_matches(name, called, n=1)
    return f" (did you mean '{called[near[0]]}'?)" if near else ""


def _written(folder: Path) -> float:
    files = (folder / file for file in _FILES)
    return max(path.stat().st_mtime for path in files if path.exists())


def _read(folder: Path) -> Subject:
    if (folder / ComparisonRecord.FILE).exists():
        return _comparison(folder)
    if (folder / ExperimentState.FILE).exists():
        return _experiment(folder)
    record = RunRecord.read(folder.name)
    if record is None:
        raise UsageError(f"{paths.shown(folder)}: its run.json cannot be read")
    if record.valid:
        return Subject(folder.name, "run", folder, (record,))
    return Subject(folder.name, "run", folder, (), (record,))


def _experiment(folder: Path) -> Subject:
    state = ExperimentState.read(folder.name)
    if state is None:
        raise UsageError(f"{paths.shown(folder / ExperimentState.FILE)} cannot be read")
    spoiled = _records(name for cell in state.cells for name in cell.attempts)
    # The runs of a comparison; what they answered has a file of its own.
    kind: SubjectKind = "runs" if state.kind in ("run", "comparison") else state.kind
    return Subject(folder.name, kind, folder, tuple(state.records()), spoiled, state)


def _comparison(folder: Path) -> Subject:
    found = ComparisonRecord.read(folder.name)
    if found is None:
        raise UsageError(f"{paths.shown(folder / ComparisonRecord.FILE)} cannot be read")
    # A side lists also what was tried and is no result.
    records = _records(dict.fromkeys([*found.a.runs, *found.b.runs]))
    valid = tuple(record for record in records if record.valid)
    spoiled = tuple(record for record in records if not record.valid)
    return Subject(folder.name, "comparison", folder, valid, spoiled, comparison=found)


def _records(names: Iterable[str]) -> tuple[RunRecord, ...]:
    return tuple(record for name in names if (record := RunRecord.read(name)) is not None)
