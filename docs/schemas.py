"""Writes the published schemas, docs/*.schema.json: `python -m docs.schemas` after a change of
spikelab/results/ or spikelab/plans/."""

from typing import Any

from pydantic import BaseModel

from spikelab import paths
from spikelab.plans.model import Plan
from spikelab.results.comparison import ComparisonRecord
from spikelab.results.experiment import ExperimentState
from spikelab.results.files import write_json
from spikelab.results.run import RunRecord

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
MODELS: dict[str, tuple[type[BaseModel], str]] = {
    "run": (RunRecord, "Spikelab run record"),
    "experiment": (ExperimentState, "Spikelab experiment"),
    "comparison": (ComparisonRecord, "Spikelab comparison"),
    "plan": (Plan, "Spikelab plan"),
}

# A plan's file may have a parameter where its model, filled in, has a value.
_PLACEHOLDER = {"type": "string", "pattern": r"^\$\{[^}]+\}$"}
_PLACEHOLDER_NAME = "Placeholder"
# These say what parameters are, and hold none.
_WITHOUT_PLACEHOLDERS = ("Parameter", "Preset")
_ANNOTATIONS = ("title", "description", "default")


def json_schema(name: str) -> dict[str, Any]:
    """The schema that `docs/<name>.schema.json` holds."""
    model, title = MODELS[name]
    schema = model.model_json_schema(by_alias=True)
    if name == "plan":
        schema = _of_the_file(schema)
    return {"$schema": _DIALECT, **schema, "title": title}


def _of_the_file(schema: dict[str, Any]) -> dict[str, Any]:
    definitions = {
        name: each if name in _WITHOUT_PLACEHOLDERS else _or_placeholder(each)
        for name, each in schema.pop("$defs").items()
    }
    whole: dict[str, Any] = _or_placeholder(schema)
    return {"$defs": {**definitions, _PLACEHOLDER_NAME: _PLACEHOLDER}, **whole}


def _or_placeholder(schema: Any) -> Any:
    """Every value that no text such as `${rate}` would fit, or such a text."""
    if isinstance(schema, list):
        return [_or_placeholder(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if not _refuses_texts(schema):
        return {
            key: value if key in ("default", "propertyNames") else _or_placeholder(value)
            for key, value in schema.items()
        }
    notes = {key: value for key, value in schema.items() if key in _ANNOTATIONS}
    value = {key: value for key, value in schema.items() if key not in _ANNOTATIONS}
    choices = value["anyOf"] if list(value) == ["anyOf"] else [value]
    return {"anyOf": [*choices, {"$ref": f"#/$defs/{_PLACEHOLDER_NAME}"}], **notes}


def _refuses_texts(schema: dict[str, Any]) -> bool:
    if "anyOf" in schema:
        kinds = [each for each in schema["anyOf"] if each.get("type") != "null"]
        return all(_refuses_texts(each) for each in kinds)
    numeric = schema.get("type") in ("integer", "number", "boolean")
    return numeric or (
        schema.get("type") == "string" and {"enum", "const"} & schema.keys() != set()
    )


if __name__ == "__main__":
    for each in MODELS:
        write_json(paths.ROOT / "docs" / f"{each}.schema.json", json_schema(each))
