"""Parameters of a plan: the values that `--set` changes, and presets, which set several."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, model_validator

from spikelab.errors import did_you_mean
from spikelab.plans.mistakes import mistake
from spikelab.plans.values import Name, Scalar, Strict


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
