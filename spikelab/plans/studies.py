"""What a plan says of several runs: variants, sweeps, capacity searches, comparisons, presets."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from spikelab.plans.values import Duration, Name, Scalar, Strict, Url, a_second_or_more
from spikelab.units import parse_fraction

# A figure of a step that comparisons know; spikelab/comparison/metrics.py says how each is taken.
MetricName = Literal[
    "p50", "p90", "p95", "p99", "p99.9", "mean", "success", "throughput", "goodput"
]


def _share(text: str) -> str:
    if not 0 < parse_fraction(text) < 1:
        raise ValueError("must be above 0 and below 1, such as 5% or 0.05")
    return text


Share = Annotated[str, AfterValidator(_share)]


class Variant(Strict):
    """One side of a comparison, or one rung of a ladder: what it runs with.

    `set`: values of the plan's parameters. `settings`: of the lab's own target. `url`: another
    target. `image` (docker runtime) or `jar` (host runtime): another build of the lab's target.
    `compose`: override files on top of the lab's own, for this variant (docker runtime).
    """

    name: Name
    set: dict[str, Scalar] = {}
    settings: dict[str, Scalar] = {}
    url: Url | None = None
    image: str | None = None
    jar: str | None = None
    compose: list[str] = []


class Sweep(Strict):
    """A grid of runs. `values`: a parameter's values. `settings`: a target setting's; a variant
    for each combination.

    `order`: in every repeat, `abba` takes the values as written and turns the variants' order
    round; `blocks` shuffles all, by the seed; `as-written` does neither.
    """

    values: dict[str, Annotated[list[Scalar], Field(min_length=1)]] = {}
    settings: dict[str, Annotated[list[Scalar], Field(min_length=1)]] = {}
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
    limits: list[str] = []
    overload: Overload | None = None


class CompareBy(Strict):
    """How variants, or this plan's runs and a baseline, are compared.

    `primary`: the one metric that decides. `at`: of a sweep, the value at which it does.
    `metrics`: the others, under Holm's correction. `margin`: what does not matter.
    """

    primary: MetricName = "p95"
    at: dict[str, Scalar] = {}
    metrics: list[MetricName] = ["p50", "p99", "throughput"]
    margin: Share = "5%"


class Preset(Strict):
    """A shorter or longer form of the plan: `--preset quick` sets these parameters."""

    about: str
    set: dict[str, Scalar]
