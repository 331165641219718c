"""A comparison as a file, results/<comparison>/comparison.json.

`docs/comparison.schema.json` is generated from these models (`python -m docs.schemas`).
Latencies are in seconds, rates per second, shares of 1.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from spikelab.results.files import Count, Moment, Part, ResultFile
from spikelab.results.run import Scalar
from spikelab.statistics.pairs import Answer
from spikelab.statistics.shares import CONFIDENCE

# A figure of a step that comparisons know; spikelab/comparison/verdict.py says how each is taken.
MetricName = Literal[
    "p50", "p90", "p95", "p99", "p99.9", "mean", "success", "throughput", "goodput"
]


MetricUnit = Literal["s", "1/s", "share"]


SCHEMA_VERSION = 1
# JSON has no infinity; null: not measured.
MetricValue = float | Literal["infinite"] | None


class Side(Part):
    """A or B: its name as one may write it again, and its runs."""

    name: str
    plan: str
    experiment: str | None = None
    variant: str | None = None
    runs: list[str]


class PairFigures(Part):
    """One pair of runs that counts. Which one is A's and which B's is said by testid."""

    repeat: Count
    a_run: str
    b_run: str
    a: MetricValue
    b: MetricValue


class LeftOut(Part):
    """A pair that gives no figures for any metric."""

    place: dict[str, Scalar]
    repeat: Count
    reason: str


class Advice(Part):
    """What a new comparison would need: docs/statistics.md says how far it can be trusted."""

    pairs_needed: Annotated[
        Count | None,
        Field(description="of a new comparison, to decide with 80 % chance; null: over 1,000"),
    ]
    more_pairs: Annotated[Count | None, Field(description="than this comparison had")]
    smallest_difference: Annotated[
        float, Field(description="the ratio above 1 that these pairs tell from 1 with 80 % chance")
    ]


class Result(Part):
    """One metric at one place. `a` and `b` are geometric means over the pairs that count."""

    metric: MetricName
    about: str
    unit: MetricUnit
    better: Literal["lower", "higher"]
    place: dict[str, Scalar]
    primary: bool = False
    a: MetricValue = None
    b: MetricValue = None
    pairs: list[PairFigures]
    ratio: Annotated[float | None, Field(description="B / A; null where a figure has none")] = None
    low: Annotated[
        float | None, Field(description="of the ratio's interval, at the record's confidence_level")
    ] = None
    high: float | None = None
    log_deviation: Annotated[
        float | None, Field(description="standard deviation of the pairs' ln(B / A)")
    ] = None
    verdict: Annotated[Answer | None, Field(description="about B; null: not judged")] = None
    difference_p: float | None = None
    equivalence_p: float | None = None
    reason: str | None = None
    advice: Advice | None = None

    @model_validator(mode="after")
    def _an_interval_has_two_ends(self) -> Self:
        if (self.low is None) != (self.high is None):
            raise ValueError("low and high: one of the two is missing")
        return self

    @property
    def times(self) -> str:
        """The ratio as ``×1.10``."""
        return f"×{self.ratio:.{self._digits}f}"

    @property
    def grounds(self) -> str:
        """What the verdict rests on: the interval and the number of pairs, or the reason."""
        pairs = f"{len(self.pairs)} pairs"
        if self.low is None or self.high is None:
            return self.reason or pairs
        reason = f"; {self.reason}" if self.reason else ""
        return f"{self.low:.{self._digits}f}–{self.high:.{self._digits}f}, {pairs}{reason}"

    @property
    def confidence(self) -> str:
        """The verdict with its grounds, as a run's history has it.

        ``worse (×1.10, 1.08–1.12, 6 pairs)``
        """
        if self.ratio is None:
            if self.verdict == "inconclusive" and self.reason:
                return f"inconclusive ({self.reason})"
            return f"{self.verdict} (by order alone, {len(self.pairs)} pairs)"
        return f"{self.verdict} ({self.times}, {self.grounds})"

    @property
    def _digits(self) -> int:
        """Enough that the ends of a narrow interval differ."""
        wide = self.low is None or self.high is None or self.high - self.low >= 0.01
        return 2 if wide else 3


class Noise(Part):
    """What identical arms showed in one metric: how finely this machine can compare."""

    metric: MetricName
    pairs: Count
    log_deviation: float | None
    smallest_difference: Annotated[
        float | None, Field(description="ratio that so many pairs tell from 1 with 80 % chance")
    ]
    pairs_needed: Annotated[
        Count | None, Field(description="for the margin, with 80 % chance; null: over 1,000")
    ]
    reason: str | None = None


class ComparisonRecord(ResultFile):
    """The whole file: B against A. `verdict` is the primary metric's at the place that decides;
    null for runs that are only set side by side: `summary` says why. `noise` is there for identical
    arms."""

    FILE = "comparison.json"
    NAME = "comparison"

    schema_version: Annotated[int, Field(alias="schema")] = SCHEMA_VERSION
    comparison: str
    created: Moment
    plan: str
    primary: MetricName
    at: Annotated[dict[str, Scalar], Field(description="where the primary metric decides")] = {}
    margin: Annotated[float, Field(description="0.05: ratios of 1 / 1.05 to 1.05 do not matter")]
    a: Side
    b: Side
    interleaved: Annotated[
        bool | None, Field(description="the lab took A's and B's runs in turn; null: not known")
    ]
    question: Annotated[
        str | None, Field(description="the same of all comparisons of what A and B are here")
    ] = None
    earlier: Annotated[
        list[str], Field(description="comparisons of this question before it that count as looks")
    ] = []
    looks: Annotated[
        list[Count], Field(description="planned, after so many pairs; empty: one, at the end")
    ] = []
    confidence_level: Annotated[
        float, Field(gt=0, lt=1, description="of the intervals; 1 minus this look's error")
    ] = CONFIDENCE
    notes: list[str] = []
    results: Annotated[list[Result], Field(description="the primary one first, if one decided")]
    left_out: list[LeftOut] = []
    noise: list[Noise] | None = None
    verdict: Answer | None
    summary: str

    @property
    def deciding(self) -> Result | None:
        """The primary metric's result; None where nothing was judged."""
        return next((result for result in self.results if result.primary), None)

    @property
    def confidence(self) -> str | None:
        """What it says of each run of B; None where nothing was judged, or of identical arms."""
        return self.deciding.confidence if self.deciding and not self.noise else None
