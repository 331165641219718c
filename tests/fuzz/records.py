"""Files of results: `runs`, `report` and `compare` show one or say in a line why not.

Each case lies where a lab would find it, among the other files that it speaks of.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spikelab import paths
from spikelab.cli import output
from spikelab.comparison import pairing, verdict
from spikelab.comparison.experiment import QuestionOptions
from spikelab.errors import UsageError
from spikelab.experiments.session import close_abandoned
from spikelab.history import run_line, step_line
from spikelab.report.content import capacity_of
from spikelab.report.formats import rendered
from spikelab.results.experiment import ExperimentState
from spikelab.results.lookup import Subject, find
from spikelab.results.run import RunRecord
from spikelab.series import load_series
from tests.fuzz.oracle import Check, clear, printed, sampled, scratch

DATA = paths.ROOT / "tests" / "data" / "report"
# One in so many: tables on the console, comparisons, pages with figures.
_TABLES = 32
_COMPARISONS = 64
_PAGES = 4096


@dataclass(frozen=True)
class Seed:
    """A valid file in the folder `name`, and the folders of the runs that it speaks of."""

    name: str
    runs: Sequence[str] = ()

    def read(self, file: str) -> bytes:
        return (DATA / self.name / file).read_bytes()


_SPIKE, _STEPS = "20261121T122319Z-tomcat-spike-824f", "20261121T122424Z-three-steps-d7b4"
_GRID = ("20261121T120151Z-tomcat-grid-7caa", "20261121T120213Z-tomcat-grid-a63b")
_SEARCH = ("20261121T122555Z-capacity-75b7", "20261121T122616Z-capacity-af5f")
_POOLS = ("20261121T122525Z-two-pools-ae60", "20261121T122533Z-two-pools-8c97")
_PAIR = ("20261121T120610Z-comparisons-49d9", "20261121T120620Z-comparisons-3ed4")
SEEDS = {
    "run.json": (Seed(_SPIKE), Seed(_STEPS), Seed(_PAIR[0]), Seed(_SEARCH[0])),
    "series.json": (Seed(_SPIKE), Seed(_STEPS)),
    "experiment.json": (
        Seed("20261121T122525Z-two-pools-3b6a", _POOLS),
        Seed("20261121T120151Z-tomcat-grid-e687", _GRID),
        Seed("20261121T122553Z-capacity-42ab", _SEARCH),
    ),
    "comparison.json": (Seed("20261121T120753Z-compare-3012", _PAIR),),
}


@contextmanager
def check_records(file: str) -> Iterator[Check]:
    """Of files of that name."""
    with scratch() as folder:
        worlds = {seed.name: _world(folder / seed.name, seed, file) for seed in SEEDS[file]}
        names = re.compile("|".join(worlds).encode())

        def check(data: bytes) -> bool:
            """In the world that it names; else in the first."""
            named = names.search(data)
            name = named[0].decode() if named else next(iter(worlds))
            paths.RESULTS = worlds[name]
            path = paths.RESULTS / name / file
            path.write_bytes(data)
            try:
                return _CHECKS[file](name, data)
            finally:
                printed()

        yield check


def _world(folder: Path, seed: Seed, file: str) -> Path:
    for run in (*seed.runs, *([seed.name] if file == "series.json" else [])):
        (folder / run).mkdir(parents=True)
        shutil.copy(DATA / run / "run.json", folder / run)
    (folder / seed.name).mkdir(parents=True, exist_ok=True)
    return folder


def _found(name: str) -> Subject | None:
    """What `report` finds; it names the folder where that cannot be read."""
    try:
        return find(name)
    except UsageError as error:
        clear(error, name)
        return None


def _check_run(name: str, data: bytes) -> bool:
    subject = _found(name)
    records = list(RunRecord.read_all())
    assert bool(records) == (subject is not None), "one command reads it, another does not"
    if not subject:
        return False
    (record,) = records
    assert RunRecord.model_validate_json(json.dumps(record.to_json())) == record
    _report(subject, data)
    if sampled(data, _TABLES):
        close_abandoned(None)
        record = next(RunRecord.read_all())
        lines = [run_line(record), *(step_line(record, step) for step in record.steps)]
        assert not any("\n" in line for line in lines)
        output.show_runs([record])
        output.show_results([record])
        output.dashboard_url("http://127.0.0.1:3000", record)
    if sampled(data, _COMPARISONS):
        _compare(name)
    return True


def _report(subject: Subject, data: bytes) -> None:
    for format_name in ("md", "csv", "junit"):
        rendered(subject, format_name).encode()
    if sampled(data, _PAGES):
        rendered(subject, "html").encode()


def _compare(name: str) -> None:
    """With itself, which is no news but goes through all of it."""
    try:
        arm = pairing.find_arm(name)
        record = verdict.compare_arms(
            arm, arm, QuestionOptions(None, None, None, []).of_runs(arm.plan)
        )
        record.save().unlink()
        record.folder.rmdir()
        output.show_comparison(record)
    except UsageError as error:
        assert str(error).isprintable()


def _check_experiment(name: str, data: bytes) -> bool:
    subject = _found(name)
    states = list(ExperimentState.read_all())
    assert bool(states) == (subject is not None), "one command reads it, another does not"
    if not subject:
        return False
    (state,) = states
    _report(subject, data)
    if sampled(data, _TABLES):
        output.show_sweep(state)
        if found := capacity_of(subject):
            output.show_capacity(found, subject.records)
        close_abandoned(None)
        assert next(ExperimentState.read_all()).state != "going"
    if sampled(data, _COMPARISONS):
        _compare(name)
        pairing.variants_of(state.records())
    return True


def _check_comparison(name: str, data: bytes) -> bool:
    subject = _found(name)
    if not subject:
        return False
    assert subject.comparison
    _report(subject, data)
    if sampled(data, _TABLES):
        output.show_comparison(subject.comparison)
    return True


def _check_series(name: str, data: bytes) -> bool:
    subject = find(name)
    series = load_series(subject.folder)
    if series is None:
        return False
    assert {len(values) for values in series.points.values()} <= {len(series)}
    assert series.testid == name
    assert len(series.seconds) == len(series)
    if sampled(data, _PAGES):
        rendered(subject, "html").encode()
    return True


_CHECKS: dict[str, Callable[[str, bytes], bool]] = {
    "run.json": _check_run,
    "experiment.json": _check_experiment,
    "comparison.json": _check_comparison,
    "series.json": _check_series,
}
