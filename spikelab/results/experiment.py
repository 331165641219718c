"""The state of an experiment on disk, results/<experiment>/experiment.json: which runs it is made
of, which of them are done, and what they answered.

`docs/experiment.schema.json` is generated from these models. Written after every run, so that an
experiment that was interrupted goes on from there. A capacity search's `answer` is a
`CapacityAnswer`.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from spikelab.objectives import Verdict
from spikelab.results.files import Count, Moment, Part, ResultFile
from spikelab.results.run import Latency, Resources, RunRecord, Scalar
from spikelab.statistics.search import Outcome
from spikelab.units import show_seconds

SCHEMA_VERSION = 1
ExperimentKind = Literal["run", "sweep", "capacity", "comparison"]
ExperimentProgress = Literal["going", "stopped", "finished"]


class CellState(Part):
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

    @property
    def arm(self) -> str:
        """What its repeats have in common: `rate=600 on`."""
        values = [f"{name}={value}" for name, value in self.values.items()]
        return " ".join([*values, *([self.variant] if self.variant else [])])

    @property
    def name(self) -> str:
        """What a user calls it: `rate=600 on #2`."""
        return f"{self.arm} #{self.repeat}".lstrip()


class ExperimentState(ResultFile):
    """The whole file. `cells` are in the order of their runs; a capacity search adds to them as
    it goes. `answer` is what the experiment found, in the form of its kind."""

    FILE = "experiment.json"
    NAME = "experiment"

    schema_version: Annotated[int, Field(alias="schema")] = SCHEMA_VERSION
    experiment: str
    kind: ExperimentKind
    plan: str
    about: str = ""
    digest: Annotated[
        str, Field(description="of the plan and of all that the command line changed in it")
    ]
    arms: Annotated[
        dict[str, str],
        Field(description="by variant, a digest of what its runs measure, however many and long"),
    ] = {}
    labels: dict[str, str] = {}
    seed: int | None = None
    order: str = "as-written"
    slo: list[str] = []
    started: Moment
    ended: Moment | None = None
    state: ExperimentProgress = "going"
    reason: Annotated[str | None, Field(description="why it was stopped")] = None
    stores: Annotated[
        list[str], Field(description="that were there for its runs, and have to be for the rest")
    ] = []
    cells: list[CellState] = []
    answer: dict[str, Any] | None = None

    def records(self) -> Iterator[RunRecord]:
        """The records of the runs that are done, in the order of the cells; one that cannot be
        read is left out."""
        for cell in self.cells:
            if cell.testid is not None and (record := RunRecord.read(cell.testid)) is not None:
                yield record


OverloadOutcome = Literal["holds", "sheds", "queues", "crashes", "inconclusive"]
# What a step can miss: the rate itself, an objective, a limit on a resource; or the target died.
MissKind = Literal["rate", "queue", "objective", "resource", "death"]


class Miss(Part):
    """Something that a step did not hold: an objective's or a limit's text, or in words."""

    kind: MissKind
    text: str


class CapacityStep(Part):
    """A judged step. `value`: of the parameter that is searched; rates are requests a second."""

    testid: str
    value: float
    verdict: Verdict
    missed: list[Miss] = []
    why: Annotated[str, Field(description="what decided it, or why nothing did")] = ""
    started_rate: float | None = None
    achieved_rate: float | None = None
    success: Annotated[float | None, Field(description="share of all that were due")] = None
    latency_seconds: Latency = Latency()
    resources: Resources = Resources()


class OverloadAnswer(Part):
    """What the target did at more than its capacity, and how it came back.

    `sheds`: good answers go on near the capacity and the rest is refused at once. `queues`: answers
    come later and later, or time out. `crashes`: it died. `holds`: it met the SLO even so.
    `inconclusive`: its step has no verdict, and `why`.
    """

    outcome: OverloadOutcome
    why: Annotated[str, Field(description="nothing was decided")] = ""
    testid: str
    factor: float
    rate: Annotated[float, Field(description="of the overload, a second")]
    recovery_rate: float
    goodput: Annotated[
        float | None, Field(description="good answers within the SLO a second, of the overload")
    ] = None
    refused_share: Annotated[
        float | None, Field(description="failed without a timeout, of all that were due")
    ] = None
    timed_out_share: Annotated[
        float | None, Field(description="timed out or dropped, of all that were due")
    ] = None
    latency_seconds: Latency = Latency()
    recovery_seconds: Annotated[
        float | None,
        Field(description="from the overload's end until the SLO is met again; null: never seen"),
    ] = None
    watched_seconds: Annotated[float, Field(description="how long the recovery was watched")] = 0

    def __str__(self) -> str:
        does = f"it {self.outcome}"
        if self.outcome == "inconclusive":
            does = "nothing is decided" + (f" ({self.why})" if self.why else "")
        text = f"at {self.factor:g} × that ({self.rate:,.4g}/s) {does}"
        if self.goodput is not None:
            text += f": {self.goodput:,.0f}/s good within the SLO"
        if self.refused_share:
            text += f", {self.refused_share:.0%} refused at once"
        if self.timed_out_share:
            text += f", {self.timed_out_share:.0%} timed out or dropped"
        if self.latency_seconds.p95 is not None:
            text += f", p95 {show_seconds(self.latency_seconds.p95)}"
        if self.recovery_seconds is None:
            return f"{text}; not recovered within {show_seconds(self.watched_seconds)}"
        return f"{text}; within the SLO again after {self.recovery_seconds:.0f} s"


def unit_of(parameter: str) -> str:
    """What stands behind a value of the parameter."""
    return "/s" if parameter == "rate" else f" {parameter}"


class CapacityAnswer(Part):
    """[`highest_pass`, `lowest_fail`]: both confirmed, else null; docs/statistics.md.

    `limited_by`: what failed first above the capacity.
    """

    outcome: Outcome
    parameter: str
    highest_pass: float | None = None
    lowest_fail: float | None = None
    reason: str | None = None
    limited_by: list[Miss] = []
    steps: list[CapacityStep] = []
    overload: OverloadAnswer | None = None

    @model_validator(mode="after")
    def _has_the_ends_of_its_outcome(self) -> Self:
        low = self.outcome in ("found", "at least") and self.highest_pass is None
        high = self.outcome in ("found", "below") and self.lowest_fail is None
        if low or high:
            raise ValueError(f"{self.outcome}: without {'highest_pass' if low else 'lowest_fail'}")
        return self

    def __str__(self) -> str:
        """The answer in a sentence."""
        unit = "requests/s" if self.parameter == "rate" else self.parameter
        low, high = self.highest_pass, self.lowest_fail
        first = f"; above it: {self.limited_by[0].text}" if self.limited_by else ""
        if self.outcome == "found":
            return f"holds {low:,.6g} to {high:,.6g} {unit}{first}"
        if self.outcome == "at least":
            return f"holds at least {low:,.6g} {unit}, the highest that was allowed"
        if self.outcome == "below":
            return f"does not hold {high:,.6g} {unit}, the lowest that was allowed{first}"
        short = unit_of(self.parameter)
        known = [f"{low:,.6g}{short} is held"] if low else []
        known += [f"{high:,.6g}{short} is not"] if high else []
        return "; ".join([f"inconclusive: {self.reason}", *known])
