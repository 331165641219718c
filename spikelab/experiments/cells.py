"""Cells: the runs that an experiment is made of."""

from collections.abc import Mapping
from dataclasses import dataclass

from spikelab.plans.values import Scalar
from spikelab.target_settings import Value


@dataclass(frozen=True)
class Cell:
    """One run: the values of the plan's parameters that it changes, its variant, all settings of
    the lab's own target, its repeat (from 1), and the experiment it belongs to."""

    variant: str | None
    settings: Mapping[str, Value]
    repeat: int
    experiment: str | None
    values: Mapping[str, Scalar]

    def __str__(self) -> str:
        parts = [f"{name}={value}" for name, value in self.values.items()]
        return " ".join([*parts, *([self.variant] if self.variant else []), f"#{self.repeat}"])
