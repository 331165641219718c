"""What a plan says of several runs: variants, a sweep, a search for capacity, a comparison.

Each is checked against what else the plan has, a mistake at the key that makes it.
"""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from spikelab.errors import UsageError, did_you_mean
from spikelab.objectives import LimitText
from spikelab.plans.parameters import (
    LONGEST_NAME,
    Amount,
    Duration,
    Name,
    Parameter,
    Strict,
    Url,
    a_second_or_more,
    check_value,
    check_values,
    mistake,
)
from spikelab.results.comparison import MetricName
from spikelab.results.run import Scalar
from spikelab.settings import load_target_declaration
from spikelab.statistics.search import Search
from spikelab.units import parse_fraction

_MOST_STEPS = 1000
_MOST_VARIANTS = 1000


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


_Bounded = Field(ge=-1e12, le=1e12)
Number = Annotated[int, _Bounded] | Annotated[float, _Bounded]


class Steps(Strict):
    """Evenly spaced values: 200, 400, 600 is first 200, last 600, step 200."""

    first: Number
    last: Number
    step: Amount


Values = Annotated[
    list[Scalar],
    Field(min_length=1),
    BeforeValidator(_spread, json_schema_input_type=list[Scalar] | Steps),
]


class Sweep(Strict):
    """A grid of runs. `values`: a parameter's values. `settings`: a target setting's; a variant
    for each combination. Either are a list, or first, last and step.

    `order`: `abba` turns values and variants round in every second repeat, and begins each such
    two with another value; `blocks` shuffles every repeat, by the seed; `as-written` does neither.
    """

    values: dict[str, Values] = {}
    settings: dict[str, Values] = {}
    order: Literal["abba", "blocks", "as-written"] = "abba"
    seed: Annotated[int, Field(ge=0)] | None = None

    def check_settings(self) -> None:
        """They are the lab's own target's, their values in range. Raises a mistake."""
        for name, values in self.settings.items():
            for place, value in enumerate(values):
                check_setting(name, value, "sweep", "settings", name, place)
            _check_different(values, "sweep", "settings", name)

    def check(self, parameters: Mapping[str, Parameter], variants: Sequence[Variant]) -> None:
        """Its values are of these parameters, in their range, and of no variant's own.

        Raises a mistake.
        """
        if self.settings and variants:
            text = "sweep.settings makes the variants itself: leave one of the two out"
            raise mistake(text, "variants")
        for name, values in self.values.items():
            check_values(parameters, {name: values[0]}, "sweep", "values")
            for place, value in enumerate(values):
                check_value(parameters[name], name, value, "sweep", "values", name, place)
            _check_different(values, "sweep", "values", name)
            for place, variant in enumerate(variants):
                if name in variant.set:
                    text = f"the sweep gives '{name}' its values: leave one of the two out"
                    raise mistake(text, "variants", place, "set", name)


def _share(text: str) -> str:
    if not 0 < parse_fraction(text) < 1:
        raise ValueError("must be above 0 and below 1, such as 5% or 0.05")
    return text


Share = Annotated[str, AfterValidator(_share)]


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
    limits: list[LimitText] = []
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

    def check(self, parameters: Mapping[str, Parameter], rates: bool) -> None:
        """It searches one of these parameters within its range. `rates`: so are all judged phases.

        Raises a mistake.
        """
        name = self.parameter
        if name not in parameters or not _is_number(parameters[name].default):
            numbers = [key for key, each in parameters.items() if _is_number(each.default)]
            why = "is no number" if name in parameters else "is no parameter of the plan"
            raise mistake(f"'{name}' {why}{did_you_mean(name, numbers)}", "capacity", "parameter")
        for key, value in (
            ("lowest", self.lowest),
            ("first", self.first),
            ("highest", self.highest),
        ):
            whole = isinstance(parameters[name].default, int) and value == int(value)
            check_value(parameters[name], name, int(value) if whole else value, "capacity", key)
        if self.overload and not rates:
            text = "the overload is a rate, and the judged phase is of another kind: leave it out"
            raise mistake(text, "capacity", "overload")


class CompareBy(Strict):
    """How variants, or this plan's runs and a baseline, are compared.

    `primary`: the one metric that decides. `at`: of a sweep, the value at which it does.
    `metrics`: the others, under Holm's correction. `margin`: what does not matter. `looks`: how
    often the verdict is looked for, evenly over the repeats; the first that is one ends the runs.
    """

    primary: MetricName = "p95"
    at: dict[str, Scalar] = {}
    metrics: list[MetricName] = ["p50", "p99", "throughput"]
    margin: Share = "5%"
    looks: Annotated[int, Field(ge=1, le=20)] = 1

    def check(
        self,
        parameters: Mapping[str, Parameter],
        swept: Mapping[str, Sequence[Scalar]],
        phases: Sequence[str],
    ) -> None:
        """The place that decides is one of the sweep's, or a judged phase. Raises a mistake."""
        for name, value in self.at.items():
            if name == "phase" and value not in phases:
                cure = did_you_mean(str(value), phases)
                raise mistake(f"there is no judged phase '{value}'{cure}", "compare", "at", name)
            if name in swept:
                check_value(parameters[name], name, value, "compare", "at", name)
            elif name != "phase":
                cure = did_you_mean(name, [*swept, "phase"])
                raise mistake(f"'{name}' is no parameter of the sweep{cure}", "compare", "at", name)


def combinations(values: Mapping[str, Sequence[Scalar]]) -> list[dict[str, Scalar]]:
    """Each with each, the last one changing fastest; of no values there is one combination."""
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def variants_of(settings: Mapping[str, Sequence[Scalar]]) -> list[Variant]:
    """The grid's variants, the last setting changing fastest, named by what they set.

    `threads-200-connections-8192-accept-100`; by the values alone where that would be too long.
    """
    if not settings:
        return []
    count = math.prod(map(len, settings.values()))
    if count > _MOST_VARIANTS:
        raise mistake(f"{count:,} combinations: at most {_MOST_VARIANTS:,}", "sweep", "settings")
    chosen = combinations(settings)
    shown = _short_names(list(settings))
    names = [_name(each, shown) for each in chosen]
    if max(map(len, names)) > LONGEST_NAME:
        names = [_name(each, {}) for each in chosen]
    if max(map(len, names)) > LONGEST_NAME:
        raise mistake("too many settings to name the variants by", "sweep", "settings")
    return [Variant(name=name, settings=each) for name, each in zip(names, chosen, strict=True)]


def _name(settings: Mapping[str, Scalar], shown: Mapping[str, str]) -> str:
    words = [f"{shown[name]}-{value}" if shown else f"{value}" for name, value in settings.items()]
    return re.sub("[^a-z0-9-]", "-", "-".join(words).lower())


def _short_names(settings: Sequence[str]) -> dict[str, str]:
    """Without what all have in common: TOMCAT_MAX_THREADS is `threads`, TOMCAT_ACCEPT_COUNT
    `accept`; in full where two would be the same."""
    short = {name: re.sub("^[A-Z]+_(M(AX|IN)_)?|_COUNT$", "", name) for name in settings}
    if len(set(short.values())) < len(short):
        short = {name: name for name in settings}
    return {name: each.lower().replace("_", "-") for name, each in short.items()}


def check_settings(settings: Mapping[str, Scalar], *location: int | str) -> None:
    """They are the lab's own target's, their values in range. Raises a mistake at `location`."""
    for name, value in settings.items():
        check_setting(name, value, *location, name)


def check_setting(name: str, value: Scalar, *location: int | str) -> None:
    """Raises a mistake at `location` where the target has no such setting, or value of it."""
    declaration = load_target_declaration()
    if name not in declaration.settings:
        text = f"unknown target setting '{name}'{did_you_mean(name, declaration.settings)}"
        raise mistake(text, *location)
    try:
        declaration.resolve({name: value})
    except UsageError as error:
        raise mistake(str(error)[:200], *location) from error


def _check_different(values: Sequence[Scalar], *location: int | str) -> None:
    for place, value in enumerate(values):
        if value in values[:place]:
            raise mistake(f"{value} stands twice", *location, place)


def _is_number(value: Scalar) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
