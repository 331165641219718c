"""Cells: the runs that an experiment is made of."""

from collections.abc import Mapping
from dataclasses import dataclass

from spikelab.cores import Cores
from spikelab.plans.studies import Variant
from spikelab.plans.values import Scalar
from spikelab.runtime import TargetBuild
from spikelab.target_settings import Value


@dataclass(frozen=True)
class Cell:
    """One run: the values of the plan's parameters that it changes, its variant, all settings of
    the lab's own target, its repeat (from 1), and the experiment it belongs to; the target's build
    (None: the lab's own), and the CPUs of driver and target (None: they share all). `fresh`: it
    begins with a restart of the target, whatever runs."""

    variant: Variant | None
    settings: Mapping[str, Value]
    repeat: int
    experiment: str | None
    values: Mapping[str, Scalar]
    build: TargetBuild | None = None
    cores: Cores | None = None
    fresh: bool = False

    @property
    def variant_name(self) -> str | None:
        return self.variant.name if self.variant else None


def cell_name(values: Mapping[str, Scalar], variant: str | None, repeat: int) -> str:
    """What a user calls it.

    >>> cell_name({"rate": 600}, "on", 2)
    'rate=600 on #2'
    """
    parts = [f"{name}={value}" for name, value in values.items()]
    return " ".join([*parts, *([variant] if variant else []), f"#{repeat}"])
