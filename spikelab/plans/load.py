"""A plan from its file: found, changed as the command line says, filled in and checked.

Every mistake is one line with file, line, key and cure.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from spikelab import paths
from spikelab.errors import UsageError, did_you_mean, printable
from spikelab.plans.model import Plan, PlanSource, Request
from spikelab.plans.parameters import Parameter, Parameters, Preset, check_values
from spikelab.plans.studies import Variant
from spikelab.results.run import Scalar
from spikelab.units import parse_whole_number, show_value


def plan_files() -> dict[str, Path]:
    """The ready plans by name."""
    return {path.stem: path for path in sorted(paths.PLANS.glob("*.yaml"))}


def load_plan(
    name: str,
    assignments: Iterable[str] = (),
    driver: str | None = None,
    sinks: Sequence[str] = (),
    preset: str | None = None,
) -> Plan:
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
    return make_plan(PlanSource(path, data, values, sinks))


def make_plan(source: PlanSource) -> Plan:
    """The plan of a source, its parameters filled in.

    Raises UsageError naming file, line, key and cure.
    """
    try:
        filled = _substitute(dict(source.data), source.values, source.path)
        plan = Plan.model_validate(filled)
        check_values(plan.parameters, source.values)
        if source.sinks:
            all_sinks = list(dict.fromkeys([*plan.effective_sinks, *source.sinks]))
            plan = Plan.model_validate({**filled, "sinks": all_sinks})
    except ValidationError as error:
        raise first_mistake(error, Plan, source.path) from error
    plan._source = source
    return plan


def changed(plan: Plan, values: Mapping[str, Scalar] | None = None, **keys: Any) -> Plan:
    """The plan with these keys instead of its file's, None for none, and these values of its
    parameters. Raises UsageError naming file, line, key and cure."""
    data = {**plan.source.data, **keys}
    data = {key: value for key, value in data.items() if value is not None or key not in keys}
    return make_plan(
        replace(plan.source, data=data, values={**plan.source.values, **(values or {})})
    )


def plan_of(plan: Plan, values: Mapping[str, Scalar], variant: Variant | None = None) -> Plan:
    """What a run of the plan is: with the values of its variant and its own, against its url.

    Raises UsageError naming file, line, key and cure.
    """
    values = {**(variant.set if variant else {}), **values}
    if values:
        source = plan.source
        key = repr(values)
        if key not in source.made:
            source.made[key] = make_plan(replace(source, values={**source.values, **values}))
        plan = source.made[key]
    if variant is None or variant.url is None:
        return plan
    return plan.model_copy(update={"target": plan.target.model_copy(update={"url": variant.url})})


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
    return _PLACEHOLDER.sub(lambda match: show_value(values[match[1]]), value)


Location = Sequence[int | str]
_LONGEST_MESSAGE = 400
# Of a plan, aliases written out; no plan has a thousand.
_MOST_PARTS = 20_000
# Steps of a location that no file has: which type of a union it was, and that it is a key.
_OF_PYDANTIC = re.compile(r"((constrained-)?(str|int|float|bool)|\[key\]|.+\[.*\])$")
_TYPES = {
    "str": "a text",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "dict": "a mapping",
    "list": "a list",
}


class EndlessError(ValueError):
    """Aliases of YAML that contain themselves, or each other too often."""


def read_mapping(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file. Raises UsageError for anything else."""
    name = paths.shown(path)
    try:
        data = read_yaml(path.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise mistake_at(path, line, f"this is no YAML: {error.problem}") from error
    except EndlessError as error:
        raise UsageError(f"{name}: {error}: write them out") from error
    except (ValueError, yaml.YAMLError) as error:
        raise UsageError(f"{name}: this is no YAML that a plan can be made of") from error
    except OSError as error:
        raise UsageError(f"{name}: cannot be read: {error.strerror}") from error
    if not isinstance(data, dict):
        raise UsageError(f"{name}: this is no plan: a plan is a mapping of keys such as 'phases'")
    return data


def read_yaml(text: str) -> Any:
    """What a YAML text holds. Raises yaml.YAMLError and, for what is YAML but no text that can be
    written again, or without an end, ValueError."""
    try:
        data = yaml.safe_load(text)
    except (LookupError, AttributeError, TypeError, ArithmeticError, RecursionError) as error:
        # PyYAML lets wrong dates, numbers and truth values, and endless nesting, through as these.
        raise ValueError("no YAML that has a value") from error
    parts = [data]
    for _ in range(_MOST_PARTS):
        if not parts:
            return data
        part = parts.pop()
        if isinstance(part, str):
            part.encode()
        elif isinstance(part, dict):
            parts += [*part, *part.values()]
        elif isinstance(part, list | tuple | set):
            parts += part
    raise EndlessError("its aliases make it endless")


def line_of(path: Path, location: Location) -> tuple[int, int]:
    """The 1-based line of a key in a YAML file, the nearest parent's if it is absent; and how many
    steps of the location the file has."""
    node = yaml.compose(path.read_text(encoding="utf-8"))
    line = 1
    for place, step in enumerate(location):
        found = _child(node, step)
        if found is None:
            return line, place
        line, node = found
    return line, len(location)


def _child(node: yaml.Node | None, step: int | str) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step].start_mark.line + 1, node.value[step]
    return None


def mistake_at(path: Path, line: int, said: str) -> UsageError:
    """A mistake in a file, on one line whatever keys and values the file has."""
    return UsageError(f"{paths.shown(path)}: line {line}: {printable(said)}"[:_LONGEST_MESSAGE])


def first_mistake(error: ValidationError, model: type[BaseModel], path: Path) -> UsageError:
    """The first mistake of a validation as one line: file, line, key, cure."""
    # A misspelt key is also a missing one: the misspelling is the mistake.
    mistakes = sorted(error.errors(), key=lambda each: each["type"] == "missing")
    details = mistakes[0]
    line, there = line_of(path, details["loc"])
    absent = details["loc"][there:]
    location = [*details["loc"][:there], *(s for s in absent if not _OF_PYDANTIC.match(str(s)))]
    key = ".".join(str(step) for step in location)
    said = _alternatives(mistakes, details["loc"])
    said = f"{key}: {said}" if said else _explain(details, key, model, location)
    return mistake_at(path, line, said)


def _alternatives(mistakes: Sequence[ErrorDetails], location: Location) -> str:
    """What a value may be that is of no type of a union; empty where that is not the mistake."""
    beside = [each for each in mistakes if each["loc"][:-1] == location[:-1]]
    tags = [str(each["loc"][-1]) for each in beside]
    of_types = all(each["type"].endswith(("_type", "_parsing")) for each in beside)
    if len(tags) < 2 or not of_types or not all(map(_OF_PYDANTIC.match, tags)):
        return ""
    types = [tag.removeprefix("constrained-").partition("[")[0] for tag in tags]
    words = [_TYPES[name] for name in types if name in _TYPES]
    return "must be " + " or ".join(dict.fromkeys(words))


def _explain(details: ErrorDetails, key: str, model: type[BaseModel], location: Location) -> str:
    if details["type"] == "extra_forbidden":
        return f"unknown key '{key}'" + did_you_mean(str(location[-1]), _keys_at(model, location))
    if details["type"] == "missing":
        return f"the key '{key}' is missing"
    said = details["msg"].removeprefix("Value error, ")
    if details["type"] not in ("plan", "value_error"):
        said = f"{said[0].lower()}{said[1:]}"
    return f"{key}: {said}" if key else said


@cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()


def _keys_at(model: type[BaseModel], location: Location) -> list[str]:
    """The keys that are known where `location` points, found in the JSON schema."""
    schema = _schema(model)
    here = schema
    for step in location[:-1]:
        here = here.get("items", {}) if isinstance(step, int) else _property(here, step)
        here = _resolve(here, schema)
    return list(here.get("properties", {}))


def _property(schema: dict[str, Any], name: str) -> dict[str, Any]:
    by_pattern: dict[str, Any] = next(iter(schema.get("patternProperties", {}).values()), {})
    found = schema.get("properties", {}).get(name) or schema.get("additionalProperties", by_pattern)
    return found if isinstance(found, dict) else {}


def _resolve(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    for option in (schema, *schema.get("anyOf", []), *schema.get("allOf", [])):
        if "$ref" in option:
            return dict(root["$defs"][option["$ref"].rsplit("/", 1)[-1]])
    return schema
