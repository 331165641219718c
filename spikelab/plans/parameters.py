"""Parameters of a plan: the values that `--set` changes."""

from typing import Self

from pydantic import BaseModel, model_validator

from spikelab.plans.values import Scalar, Strict


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


class Parameters(BaseModel):
    """A plan's parameters alone: they are needed before the rest can be read."""

    parameters: dict[str, Parameter]
