"""What a plan's parts must have in common, each mistake at the key that makes it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from spikelab.errors import UsageError, did_you_mean
from spikelab.plans.mistakes import mistake
from spikelab.plans.parameters import check_value, check_values
from spikelab.plans.scripts import require_script, script_facts
from spikelab.plans.values import Scalar
from spikelab.target_settings import load_target_declaration

if TYPE_CHECKING:
    from spikelab.plans.model import Plan

_MOST_RUNS = 10_000
# Locust changes its load once in this time (locust/lib/plan.py).
_LOCUST_CHANGE_SECONDS = 1.0


def check_driver(plan: Plan) -> None:
    """The driver and its script run these phases. Raises a mistake."""
    try:
        name = plan.script_of(plan.driver)
        require_script(name, plan.driver)
    except ValueError as error:
        raise mistake(str(error), "script") from error
    script = script_facts(name, plan.driver)
    for place, phase in enumerate(plan.phases):
        if phase.kind not in script.kinds:
            known = " and ".join(script.kinds)
            text = f"the script {name} takes the kind {known}, not {phase.kind}"
            raise mistake(text, "phases", place, "kind")
    if script.one_phase and len(plan.phases) > 1:
        text = f"the script {name} runs one phase: give the others to steady, or leave them out"
        raise mistake(text, "phases", 1)
    if plan.driver == "locust":
        _check_locust(plan)


def _check_locust(plan: Plan) -> None:
    if "influxdb" in (plan.sinks or []):
        raise mistake("Locust keeps no raw samples in influxdb; k6 does", "sinks")
    for place, phase in enumerate(plan.phases):
        if phase.jitter_seconds:
            text = "jitter is for k6: Locust spreads its users by itself; leave it out"
            raise mistake(text, "phases", place, "jitter")
    order = sorted(enumerate(plan.phases), key=lambda each: each[1].start_seconds)
    for (_, before), (place, after) in pairwise(order):
        gap = round(after.start_seconds - before.start_seconds - before.duration_seconds, 3)
        if gap < 0:
            text = f"Locust runs one phase at a time, and {before.name} has not ended by then"
            raise mistake(f"{text}: start it later, or take k6", "phases", place)
        if 0 < gap < _LOCUST_CHANGE_SECONDS:
            text = f"less than 1s after {before.name}, in which Locust changes its load once"
            raise mistake(f"{text}: start it with its end, or later", "phases", place)


def check_judged(plan: Plan) -> None:
    """Something is judged. Raises a mistake."""
    if not any(phase.judged for phase in plan.phases):
        raise mistake("no phase is judged: take judged: false out of one", "phases")


def check_order(plan: Plan) -> None:
    """Phases that change places are of one duration. Raises a mistake."""
    durations = {phase.duration_seconds for phase in plan.phases if phase.judged}
    if plan.phase_order == "alternating" and len(durations) > 1:
        raise mistake("only phases of one duration can change places", "phase_order")


def check_settings(plan: Plan) -> None:
    """Settings are the lab's own target's, their values in range. Raises a mistake."""
    _check_settings(plan.target.settings, "target", "settings")
    for place, variant in enumerate(plan.variants):
        _check_settings(variant.settings, "variants", place, "settings")
    for name, values in (plan.sweep.settings if plan.sweep else {}).items():
        for place, value in enumerate(values):
            _check_setting(name, value, "sweep", "settings", name, place)
        _check_different(values, "sweep", "settings", name)


def _check_settings(settings: Mapping[str, Scalar], *location: int | str) -> None:
    for name, value in settings.items():
        _check_setting(name, value, *location, name)


def _check_setting(name: str, value: Scalar, *location: int | str) -> None:
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


def check_studies(plan: Plan) -> None:
    """Variants, sweep, search and comparison speak of parameters that there are, in their range.

    Raises a mistake.
    """
    for place, variant in enumerate(plan.variants):
        check_values(plan.parameters, variant.set, "variants", place, "set")
    _check_sweep(plan)
    _check_capacity(plan)
    _check_compare(plan)


def _check_sweep(plan: Plan) -> None:
    if plan.sweep is None:
        return
    if plan.sweep.settings and plan.variants:
        text = "sweep.settings makes the variants itself: leave one of the two out"
        raise mistake(text, "variants")
    for name, values in plan.sweep.values.items():
        check_values(plan.parameters, {name: values[0]}, "sweep", "values")
        for place, value in enumerate(values):
            check_value(plan.parameters[name], name, value, "sweep", "values", name, place)
        _check_different(values, "sweep", "values", name)
        for place, variant in enumerate(plan.variants):
            if name in variant.set:
                text = f"the sweep gives '{name}' its values: leave one of the two out"
                raise mistake(text, "variants", place, "set", name)


def _is_number(value: Scalar) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_runs(plan: Plan) -> None:
    """They can be done, and listed. Raises a mistake."""
    swept = plan.sweep.values.values() if plan.sweep else ()
    runs = math.prod(map(len, swept)) * max(1, len(plan.variants)) * plan.repeats
    if runs > _MOST_RUNS:
        text = f"with variants and repeats {runs:,} runs: at most {_MOST_RUNS:,}"
        raise mistake(text, "sweep" if plan.sweep else "repeats")


def _check_capacity(plan: Plan) -> None:
    search = plan.capacity
    if search is None:
        return
    name = search.parameter
    if name not in plan.parameters or not _is_number(plan.parameters[name].default):
        numbers = [key for key, each in plan.parameters.items() if _is_number(each.default)]
        why = "is no number" if name in plan.parameters else "is no parameter of the plan"
        raise mistake(f"'{name}' {why}{did_you_mean(name, numbers)}", "capacity", "parameter")
    for key in ("lowest", "first", "highest"):
        value: float = getattr(search, key)
        whole = isinstance(plan.parameters[name].default, int) and value == int(value)
        check_value(plan.parameters[name], name, int(value) if whole else value, "capacity", key)
    if search.overload and any(phase.judged and phase.kind != "rate" for phase in plan.phases):
        text = "the overload is a rate, and the judged phase is of another kind: leave it out"
        raise mistake(text, "capacity", "overload")


def _check_compare(plan: Plan) -> None:
    if plan.compare is None:
        return
    if len(plan.variants) == 1:
        raise mistake("one variant is compared with nothing: give two, or none", "variants")
    swept = plan.sweep.values if plan.sweep else {}
    phases = [phase.name for phase in plan.phases if phase.judged]
    for name, value in plan.compare.at.items():
        if name == "phase" and value not in phases:
            raise mistake(
                f"there is no judged phase '{value}'{did_you_mean(str(value), phases)}",
                "compare",
                "at",
                name,
            )
        if name in swept:
            check_value(plan.parameters[name], name, value, "compare", "at", name)
        elif name != "phase":
            cure = did_you_mean(name, [*swept, "phase"])
            raise mistake(f"'{name}' is no parameter of the sweep{cure}", "compare", "at", name)
