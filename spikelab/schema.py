"""Writes the published schemas, docs/*.schema.json: `python -m spikelab.schema` after a change of
spikelab/record.py, spikelab/experiments/state.py or spikelab/plans/."""

from typing import Any

from pydantic import BaseModel

from spikelab import paths
from spikelab.experiments.state import ExperimentState
from spikelab.plans.model import Plan
from spikelab.record import RunRecord, write_json

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
MODELS: dict[str, tuple[type[BaseModel], str]] = {
    "run": (RunRecord, "Spikelab run record"),
    "experiment": (ExperimentState, "Spikelab experiment"),
    "plan": (Plan, "Spikelab plan"),
}


def json_schema(name: str) -> dict[str, Any]:
    """The schema that `docs/<name>.schema.json` holds."""
    model, title = MODELS[name]
    return {"$schema": _DIALECT, **model.model_json_schema(by_alias=True), "title": title}


if __name__ == "__main__":
    for each in MODELS:
        write_json(paths.ROOT / "docs" / f"{each}.schema.json", json_schema(each))
