"""The state of an experiment on disk, results/<experiment>/experiment.json: which runs it is made
of, which of them are done, and what they answered.

`docs/experiment.schema.json` is generated from these models. Written after every run, so that an
experiment that was interrupted goes on from there.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from spikelab import paths
from spikelab.kept import Count, Kept, Moment, read_kept
from spikelab.plans.values import Scalar
from spikelab.record import RunRecord, read_record, write_json

SCHEMA_VERSION = 1
FILE = "experiment.json"
Kind = Literal["run", "sweep", "capacity", "comparison"]
State = Literal["going", "stopped", "finished"]


class CellState(Kept):
    """One planned run. `testid` is that of its valid run, null until there is one."""

    values: dict[str, Scalar] = {}
    variant: str | None = None
    repeat: Count = 1
    testid: str | None = None
    attempts: Annotated[
        list[str], Field(description="runs of this cell that are no result, by their testid")
    ] = []

    @property
    def done(self) -> bool:
        return self.testid is not None


class ExperimentState(Kept):
    """The whole file. `cells` are in the order of their runs; a capacity search adds to them as
    it goes. `answer` is what the experiment found, in the form of its kind."""

    schema_version: Annotated[int, Field(alias="schema")] = SCHEMA_VERSION
    experiment: str
    kind: Kind
    plan: str
    about: str = ""
    digest: Annotated[
        str, Field(description="of the plan and of all that the command line changed in it")
    ]
    labels: dict[str, str] = {}
    seed: int | None = None
    order: str = "as-written"
    slo: list[str] = []
    started: Moment
    ended: Moment | None = None
    state: State = "going"
    reason: Annotated[str | None, Field(description="why it was stopped")] = None
    stores: Annotated[
        list[str], Field(description="that were there for its runs, and have to be for the rest")
    ] = []
    cells: list[CellState] = []
    answer: dict[str, Any] | None = None

    @property
    def folder(self) -> Path:
        return paths.RESULTS / self.experiment

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True)

    def save(self) -> None:
        """Writes experiment.json whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_json(self.folder / FILE, self.to_json())

    def records(self) -> Iterator[RunRecord]:
        """The records of the runs that are done, in the order of the cells; one that cannot be
        read is left out."""
        for cell in self.cells:
            if cell.testid is not None and (record := read_record(cell.testid)) is not None:
                yield record


def read_state(experiment: str) -> ExperimentState | None:
    """An experiment's state by its name; None where there is none that can be read."""
    state = read_kept(ExperimentState, paths.RESULTS / experiment, FILE)
    return state if state and state.experiment == experiment else None


def all_states() -> Iterator[ExperimentState]:
    """The readable states under results/, newest first."""
    for path in sorted(paths.RESULTS.glob(f"*/{FILE}"), reverse=True):
        if (state := read_state(path.parent.name)) is not None:
            yield state
