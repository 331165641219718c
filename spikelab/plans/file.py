"""Reading a YAML plan so that every mistake is one line with file, line, key and cure."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from spikelab import paths
from spikelab.errors import UsageError, did_you_mean

Location = Sequence[int | str]


def read_mapping(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file. Raises UsageError for anything else."""
    name = paths.shown(path)
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UsageError(f"{name}: line {line}: this is no YAML: {error.problem}") from error
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        # PyYAML lets wrong dates and numbers, and endless nesting, through as these.
        raise UsageError(f"{name}: this is no YAML that a plan can be made of") from error
    except OSError as error:
        raise UsageError(f"{name}: cannot be read: {error.strerror}") from error
    if _cyclic(data):
        raise UsageError(f"{name}: a part of this plan contains itself")
    if not isinstance(data, dict):
        raise UsageError(f"{name}: this is no plan: a plan is a mapping of keys such as 'phases'")
    return data


def _cyclic(value: object, above: tuple[int, ...] = ()) -> bool:
    if not isinstance(value, dict | list):
        return False
    if id(value) in above:
        return True
    items = value.values() if isinstance(value, dict) else value
    return any(_cyclic(item, (*above, id(value))) for item in items)


def line_of(path: Path, location: Location) -> int:
    """The 1-based line of a key in a YAML file; the nearest parent's if it is absent."""
    node = yaml.compose(path.read_text(encoding="utf-8"))
    line = 1
    for step in location:
        found = _child(node, step)
        if found is None:
            break
        line, node = found
    return line


def _child(node: yaml.Node | None, step: int | str) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step].start_mark.line + 1, node.value[step]
    return None


def first_mistake(error: ValidationError, model: type[BaseModel], path: Path) -> UsageError:
    """The first mistake of a validation as one line: file, line, key, cure."""
    # A misspelt key is also a missing one: the misspelling is the mistake.
    mistakes = sorted(error.errors(), key=lambda each: each["type"] == "missing")
    details = mistakes[0]
    location = details["loc"]
    where = f"{paths.shown(path)}: line {line_of(path, location)}"
    key = ".".join(str(step) for step in location)
    return UsageError(f"{where}: {_explain(details, key, model, location)}")


def _explain(details: ErrorDetails, key: str, model: type[BaseModel], location: Location) -> str:
    if details["type"] == "extra_forbidden":
        return f"unknown key '{key}'" + did_you_mean(str(location[-1]), _keys_at(model, location))
    if details["type"] == "missing":
        return f"the key '{key}' is missing"
    message = details["msg"].removeprefix("Value error, ")
    said = f"{message[0].lower()}{message[1:]}"
    return f"{key}: {said}" if key else said


def _keys_at(model: type[BaseModel], location: Location) -> list[str]:
    """The keys that are known where `location` points, found in the JSON schema."""
    schema = model.model_json_schema()
    here = schema
    for step in location[:-1]:
        here = here.get("items", {}) if isinstance(step, int) else _property(here, step)
        here = _resolve(here, schema)
    return list(here.get("properties", {}))


def _property(schema: dict[str, Any], name: str) -> dict[str, Any]:
    found = schema.get("properties", {}).get(name) or schema.get("additionalProperties", {})
    return found if isinstance(found, dict) else {}


def _resolve(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    for option in (schema, *schema.get("anyOf", []), *schema.get("allOf", [])):
        if "$ref" in option:
            return dict(root["$defs"][option["$ref"].rsplit("/", 1)[-1]])
    return schema
