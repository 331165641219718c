"""What a plan says of several runs: variants, sweeps, capacity searches, comparisons."""

import math
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from spikelab.experiments.limits import parse_limit
from spikelab.plans.mistakes import mistake
from spikelab.plans.phases import Amount
from spikelab.plans.values import Duration, Name, Scalar, Strict, Url, a_second_or_more
from spikelab.statistics.capacity import Search
from spikelab.units import parse_fraction

# A figure of a step that comparisons know; spikelab/comparison/metrics.py says how each is taken.
MetricName = Literal[
    "p50", "p90", "p95", "p99", "p99.9", "mean", "success", "throughput", "goodput"
]

_MOST_STEPS = 1000


def _share(text: str) -> str:
    if not 0 < parse_fraction(text) < 1:
        raise ValueError("must be above 0 and below 1, such as 5% or 0.05")
    return text


def _limit(text: str) -> str:
    parse_limit(text)
    return text


Share = Annotated[str, AfterValidator(_share)]


class Variant(Strict):
    """One side of a comparison, or one rung of a ladder: what it runs with.

    `set`: values of the plan's parameters. `settings`: of the lab's own target. `url`: another
    target. `jar` or `image` (docker runtime): another build of the lab's target.
    `compose`: override files on top of the lab's own, for this variant (docker runtime).
    """

    name: Name
    set: dict[str, Scalar] = {}
    settings: dict[str, Scalar] = {}
    url: Url | None = None
    image: str | None = None
    jar: str | None = None
    compose: list[str] = []


_Bounded = Field(ge=-1e12, le=1e12)
Number = Annotated[int, _Bounded] | Annotated[float, _Bounded]


class Steps(Strict):
    """Evenly spaced values: 200, 400, 600 is first 200, last 600, step 200."""

    first: Number
    last: Number
    step: Amount


def _spread(values: object) -> object:
    """Steps as the values that they stand for."""
    if not isinstance(values, dict):
        return values
    steps = Steps.model_validate(values)
    # Rounded down with some room: 0.1 is no number that binary has exactly. A step that is next to
    # nothing makes infinitely many.
    count = math.floor(min((steps.last - steps.first) / steps.step + 1e-9, 1e15)) + 1
    if not 1 <= count <= _MOST_STEPS:
        raise ValueError(f"first, last and step make {max(0, count):,} values: give 1 to 1,000")
    return [round(steps.first + place * steps.step, 9) for place in range(count)]


Values = Annotated[
    list[Scalar],
    Field(min_length=1),
    BeforeValidator(_spread, json_schema_input_type=list[Scalar] | Steps),
]


class Sweep(Strict):
    """A grid of runs. `values`: a parameter's values. `settings`: a target setting's; a variant
    for each combination. Either are a list, or first, last and step.

    `order`: in every repeat, `abba` takes the values as written and turns the variants' order
    round; `blocks` shuffles all, by the seed; `as-written` does neither.
    """

    values: dict[str, Values] = {}
    settings: dict[str, Values] = {}
    order: Literal["abba", "blocks", "as-written"] = "abba"
    seed: Annotated[int, Field(ge=0)] | None = None


class Overload(Strict):
    """What is put on the target after a search: so many times its capacity, then rest."""

    factor: Annotated[float, Field(gt=1, le=20)] = 2.0
    duration: Annotated[Duration, AfterValidator(a_second_or_more)] = "30s"
    recovery: Annotated[Duration, AfterValidator(a_second_or_more)] = "60s"


class CapacitySearch(Strict):
    """A search for the highest value of a parameter that meets the objectives and limits.

    `limits`: resources of the target, such as `cpu < 80%`, `memory < 500MB`, `open_files < 5000`,
    `worker_threads < 90%`. Rates are requests a second.
    """

    parameter: str = "rate"
    first: Annotated[float, Field(gt=0)]
    lowest: Annotated[float, Field(gt=0)]
    highest: Annotated[float, Field(gt=0)]
    growth: Annotated[float, Field(gt=1, le=10)] = 2.0
    precision: Share = "5%"
    confirmations: Annotated[int, Field(ge=0, le=20)] = 2
    limits: list[Annotated[str, AfterValidator(_limit)]] = []
    overload: Overload | None = None

    @model_validator(mode="after")
    def _can_be_searched(self) -> Self:
        if not self.lowest <= self.first <= self.highest:
            text = f"{self.first:g}: must be from lowest {self.lowest:g} to highest"
            raise mistake(f"{text} {self.highest:g}", "first")
        self.search()
        return self

    def search(self, whole: bool = False) -> Search:
        """How its steps are chosen. `whole`: the parameter takes whole numbers alone."""
        return Search(
            first_rate=self.first,
            lowest_rate=self.lowest,
            highest_rate=self.highest,
            growth=self.growth,
            precision=parse_fraction(self.precision),
            confirmations=self.confirmations,
            whole=whole,
        )


class CompareBy(Strict):
    """How variants, or this plan's runs and a baseline, are compared.

    `primary`: the one metric that decides. `at`: of a sweep, the value at which it does.
    `metrics`: the others, under Holm's correction. `margin`: what does not matter.
    """

    primary: MetricName = "p95"
    at: dict[str, Scalar] = {}
    metrics: list[MetricName] = ["p50", "p99", "throughput"]
    margin: Share = "5%"
