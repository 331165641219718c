"""A plan's parameters, which `--set` changes and presets set; and the kinds of values that stand in
a plan, each checked when it is read."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from spikelab.errors import did_you_mean
from spikelab.objectives import ObjectiveText
from spikelab.results.run import Scalar
from spikelab.settings import TOPOLOGIES
from spikelab.units import parse_base_url, parse_duration


class Strict(BaseModel):
    """A part of a plan: a key that it does not know is a mistake."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Parameter(Strict):
    """A value that `--set NAME=…` changes; `${NAME}` in the plan stands for it."""

    about: str
    default: Scalar
    minimum: float | None = None
    maximum: float | None = None

    @model_validator(mode="after")
    def _default_is_in_range(self) -> Self:
        self.check("default", self.default)
        return self

    def check(self, name: str, value: object) -> None:
        """Raises ValueError when the value is of another type than the default, or out of range."""
        if isinstance(self.default, str | bool):
            if type(value) is not type(self.default):
                raise ValueError(f"{name}={value}: must be like {self.default}")
            return
        whole = isinstance(self.default, int)
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            raise ValueError(f"{name}={value}: must be a {'whole ' if whole else ''}number")
        if self.minimum is not None and value < self.minimum:
            raise ValueError(f"{name}={value}: must be at least {self.minimum:,g}")
        if self.maximum is not None and value > self.maximum:
            raise ValueError(f"{name}={value}: must be at most {self.maximum:,g}")


LONGEST_NAME = 60
Name = Annotated[str, Field(pattern="^[a-z0-9-]+$", max_length=LONGEST_NAME)]


class Preset(Strict):
    """A shorter or longer form of the plan: `--preset quick` sets these parameters, and runs
    these variants alone; without any, all of them."""

    about: str
    set: dict[str, Scalar] = {}
    variants: list[Name] = []


class Parameters(BaseModel):
    """A plan's parameters and presets alone: they are needed before the rest can be read.

    `variants` as they stand in the file, right or wrong."""

    parameters: dict[str, Parameter]
    presets: dict[Name, Preset]
    variants: Any

    @model_validator(mode="after")
    def _presets_set_parameters(self) -> Self:
        for name, preset in self.presets.items():
            check_values(self.parameters, preset.set, "presets", name, "set")
            for place, variant in enumerate(preset.variants):
                self._check_variant(variant, "presets", name, "variants", place)
        return self

    def _check_variant(self, name: str, *location: int | str) -> None:
        variants = self.variants if isinstance(self.variants, list) else []
        known = [str(each.get("name")) for each in variants if isinstance(each, dict)]
        if name not in known:
            cure = did_you_mean(name, known) if known else " (the plan has none)"
            raise mistake(f"there is no variant '{name}'{cure}", *location)


def check_values(
    parameters: Mapping[str, Parameter], values: Mapping[str, Scalar], *location: int | str
) -> None:
    """Raises a mistake at `location` for a value of no parameter, of its wrong type or range."""
    for key, value in values.items():
        if key not in parameters:
            cure = did_you_mean(key, parameters) if parameters else " (the plan has none)"
            raise mistake(f"'{key}' is no parameter of the plan{cure}", *location, key)
        check_value(parameters[key], key, value, *location, key)


def check_value(parameter: Parameter, name: str, value: Scalar, *location: int | str) -> None:
    """Raises a mistake at `location` for a value that the parameter cannot have."""
    try:
        parameter.check(name, value)
    except ValueError as error:
        raise mistake(str(error)[:200], *location) from error


# Topologies in front of the lab's own target, as urls of a plan: `proxy:tunnel`.
PROXY_PREFIX = "proxy:"
# Scenarios of the drivers' own, which are no load.
_RESERVED_PHASES = "spikelab-"


def _duration(text: str) -> str:
    parse_duration(text)
    return text


def _url(text: str) -> str:
    """Scheme, host and port of a server, or one of the proxy's topologies."""
    if not text.startswith(PROXY_PREFIX):
        return parse_base_url(text)
    name = text.removeprefix(PROXY_PREFIX)
    if name not in TOPOLOGIES:
        known = ", ".join(PROXY_PREFIX + each for each in TOPOLOGIES)
        raise ValueError(f"'{text}' is no topology of the proxy (known: {known})")
    return text


def above_zero(text: str) -> str:
    """A duration above 0."""
    if parse_duration(text) <= 0:
        raise ValueError("must be above 0")
    return text


def a_second_or_more(text: str) -> str:
    """A duration that k6 takes for a phase."""
    if parse_duration(text) < 1:
        raise ValueError("must be a second or more")
    return text


def below_an_hour(text: str) -> str:
    """A duration that a failed request's infinity stays above."""
    if not 0 < parse_duration(text) < 3600:
        raise ValueError("must be above 0 and below an hour")
    return text


def _phase_name(name: str) -> str:
    if name.startswith(_RESERVED_PHASES):
        raise ValueError(f"names that begin with '{_RESERVED_PHASES}' are the lab's own")
    return name


# Of each type by itself, so that the published schema has the limits.
_Amount = Field(gt=0, le=1_000_000)
Amount = Annotated[int, _Amount] | Annotated[float, _Amount]
Duration = Annotated[str, AfterValidator(_duration)]
Url = Annotated[str, AfterValidator(_url)]
PhaseName = Annotated[Name, AfterValidator(_phase_name)]
Objectives = list[ObjectiveText]


def mistake(message: str, *location: int | str) -> ValidationError:
    """An error for a validator to raise: it is reported at `location` below the validated model."""
    # Not as the template itself, in which braces would mean something.
    error = PydanticCustomError("plan", "{message}", {"message": message})
    details = InitErrorDetails(type=error, loc=location, input=None)
    return ValidationError.from_exception_data("Plan", [details])
