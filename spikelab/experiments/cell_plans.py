"""What each cell runs: its plan, the builds of the target, the CPUs."""

from collections.abc import Sequence

from spikelab.cores import Cores, chosen_cores
from spikelab.errors import UsageError
from spikelab.experiments.cells import cell_name
from spikelab.experiments.state import CellState, Kind
from spikelab.plans.load import PlanSource
from spikelab.plans.model import Plan
from spikelab.plans.studies import Variant
from spikelab.plans.values import Scalar
from spikelab.runtime import Runtime, TargetBuild
from spikelab.runtime.builds import build_of
from spikelab.stack_settings import load_stack_settings


def variant_of(plan: Plan, name: str | None) -> Variant | None:
    """A variant of the plan by its name. Raises UsageError where it has none of that name."""
    if name is None:
        return None
    for variant in plan.variants:
        if variant.name == name:
            return variant
    raise UsageError(f"plan {plan.name} has no variant '{name}'")


def plan_of(source: PlanSource, base: Plan, cell: CellState) -> Plan:
    """What a cell runs: the plan with the values of its variant and its own, against its url.

    Raises UsageError naming file, line, key and cure.
    """
    variant = variant_of(base, cell.variant)
    values: dict[str, Scalar] = {**(variant.set if variant else {}), **cell.values}
    plan = source.plan(values) if values else base
    if variant is None or variant.url is None:
        return plan
    return plan.model_copy(update={"target": plan.target.model_copy(update={"url": variant.url})})


def plans_of(source: PlanSource, cells: Sequence[CellState]) -> list[Plan]:
    """The plans of these cells, those of repeats once."""
    base = source.plan()
    different = {cell_name(cell.values, cell.variant, 0): cell for cell in cells}
    return [plan_of(source, base, cell) for cell in different.values()]


def builds_of(source: PlanSource) -> list[TargetBuild]:
    """The builds of the target that the plan's variants name. Raises UsageError."""
    builds = (build_of(variant, source.path) for variant in source.plan().variants)
    return [build for build in builds if build]


def start_differently(source: PlanSource) -> bool:
    """Whether the plan's variants need different starts of the lab's own target."""
    starts = [(v.settings, build_of(v, source.path)) for v in source.plan().variants if not v.url]
    return any(start != starts[0] for start in starts)


def cores_of(runtime: Runtime, plan: Plan, kind: Kind) -> Cores | None:
    """The CPUs of driver and target: as compose/.env says, else separate ones to compare the lab's
    own target with itself where there are enough."""
    separate = kind == "comparison" and not plan.foreign_urls
    return chosen_cores(load_stack_settings().values, runtime.cpus(), separate=separate)
