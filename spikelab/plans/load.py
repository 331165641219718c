"""Finding a plan, applying `--set` to it, and filling in its parameters."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import ValidationError

from spikelab import paths
from spikelab.errors import UsageError, did_you_mean
from spikelab.plans.file import first_mistake, line_of, mistake_at, read_mapping, read_yaml
from spikelab.plans.model import Plan
from spikelab.plans.parameters import Parameter, Parameters, Preset, check_values
from spikelab.plans.phases import Request
from spikelab.plans.values import Scalar, written
from spikelab.units import parse_whole_number


def plan_files() -> dict[str, Path]:
    """The ready plans by name."""
    return {path.stem: path for path in sorted(paths.PLANS.glob("*.yaml"))}


@dataclass(frozen=True)
class PlanSource:
    """A plan's file with what the command line changed; it makes the plan of each run."""

    path: Path
    data: Mapping[str, Any]
    values: Mapping[str, Scalar]
    sinks: Sequence[str] = ()

    def plan(self, values: Mapping[str, Scalar] | None = None) -> Plan:
        """The plan with its parameters filled in, `values` before all others.

        Raises UsageError naming file, line, key and cure.
        """
        try:
            filled = _substitute(dict(self.data), {**self.values, **(values or {})}, self.path)
            plan = Plan.model_validate(filled)
            if values:
                check_values(plan.parameters, values)
            if not self.sinks:
                return plan
            all_sinks = list(dict.fromkeys([*plan.effective_sinks, *self.sinks]))
            return Plan.model_validate({**filled, "sinks": all_sinks})
        except ValidationError as error:
            raise first_mistake(error, Plan, self.path) from error


def open_plan(
    name: str,
    assignments: Iterable[str] = (),
    driver: str | None = None,
    sinks: Sequence[str] = (),
    preset: str | None = None,
) -> PlanSource:
    """A plan by the name of a ready one or the path of a file, with a preset and then `--set
    key=value` applied, for another driver than it names, and with more sinks.

    Raises UsageError naming file, line, key and cure.
    """
    path = _find(name)
    data = read_mapping(path)
    if driver is not None:
        data["driver"] = driver
    try:
        declared = Parameters.model_validate(
            {key: data.get(key) or {} for key in Parameters.model_fields}
        )
    except ValidationError as error:
        raise first_mistake(error, Plan, path) from error
    parameters = declared.parameters
    values = {key: parameter.default for key, parameter in parameters.items()}
    if preset is not None:
        chosen = _preset(preset, declared, path)
        values |= chosen.set
        if chosen.variants:
            named = {each["name"]: each for each in data["variants"] if "name" in each}
            data["variants"] = [named[name] for name in chosen.variants]
    for assignment in assignments:
        _assign(data, parameters, values, assignment)
    return PlanSource(path, data, values, sinks)


def load_plan(
    name: str,
    assignments: Iterable[str] = (),
    driver: str | None = None,
    sinks: Sequence[str] = (),
    preset: str | None = None,
) -> Plan:
    """`open_plan` with the parameters as they are."""
    return open_plan(name, assignments, driver, sinks, preset).plan()


def _preset(name: str, declared: Parameters, path: Path) -> Preset:
    if name in declared.presets:
        return declared.presets[name]
    presets = declared.presets
    cure = did_you_mean(name, presets) if presets else " (the plan has none)"
    raise UsageError(f"{paths.shown(path)}: unknown preset '{name}'{cure}")


def _find(name: str) -> Path:
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or "/" in name:
        if path.is_file():
            return path.resolve()
        raise UsageError(f"there is no plan file '{name}'")
    ready = plan_files()
    if name in ready:
        return ready[name]
    raise UsageError(f"unknown plan '{name}'{did_you_mean(name, ready)}: see ./lab plans")


def split_assignment(text: str, option: str) -> tuple[str, str]:
    """``key`` and ``value`` of ``key=value``. Raises UsageError naming the option."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"{option} {text}: write it as {option} key=value")
    return key.strip(), value.strip()


def _assign(
    data: dict[str, Any],
    parameters: Mapping[str, Parameter],
    values: dict[str, Scalar],
    assignment: str,
) -> None:
    key, text = split_assignment(assignment, "--set")
    if key in parameters:
        values[key] = parameter_value("--set", key, text, parameters[key])
        return
    head, _, leaf = key.rpartition(".")
    if head not in ("target", "request") or leaf == "settings":
        known = [*parameters, "target.url", *(f"request.{k}" for k in Request.model_fields)]
        raise UsageError(f"--set {assignment}: unknown key '{key}'" + did_you_mean(key, known))
    section = data.get(head)
    data[head] = {
        **(section if isinstance(section, dict) else {}),
        leaf: _yaml_value("--set", text),
    }


def _yaml_value(option: str, text: str) -> Any:
    try:
        return read_yaml(text)
    except (ValueError, yaml.YAMLError) as error:
        raise UsageError(f"{option}: '{text[:60]}' is no value that YAML knows") from error


def parameter_value(option: str, key: str, text: str, parameter: Parameter) -> Scalar:
    """A parameter's value from the command line. Raises UsageError naming the option."""
    if isinstance(parameter.default, int) and not isinstance(parameter.default, bool):
        # YAML would read 12:30:00 as a number of seconds.
        number = parse_whole_number(text)
        value = text[:60] if number is None else number
    else:
        value = _yaml_value(option, text)
    try:
        parameter.check(f"{option} {key}", value)
    except ValueError as error:
        raise UsageError(str(error)[:200]) from error
    return cast(Scalar, value)


_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")


def _substitute(value: Any, values: Mapping[str, Any], path: Path, *location: int | str) -> Any:
    """Replaces `${name}`: a lone placeholder keeps its parameter's type."""
    if isinstance(value, dict):
        return {key: _substitute(item, values, path, *location, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_substitute(item, values, path, *location, n) for n, item in enumerate(value)]
    if not isinstance(value, str):
        return value
    for name in _PLACEHOLDER.findall(value):
        if name not in values:
            line, _ = line_of(path, location)
            cure = did_you_mean(name, values) if values else " (the plan has none)"
            raise mistake_at(path, line, f"'${{{name}}}' names no parameter{cure}")
    lone = _PLACEHOLDER.fullmatch(value)
    if lone:
        return values[lone[1]]
    return _PLACEHOLDER.sub(lambda match: written(values[match[1]]), value)
