"""Reading a YAML plan so that every mistake is one line with file, line, key and cure."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from spikelab import paths
from spikelab.errors import UsageError, did_you_mean, printable

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
