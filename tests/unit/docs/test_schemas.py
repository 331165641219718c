"""The published schemas are those of the code."""

import json
from pathlib import Path

import pytest

from docs.schemas import MODELS, json_schema
from spikelab import paths


@pytest.mark.parametrize("name", MODELS)
def test_the_published_schema_is_that_of_the_code(name: str) -> None:
    published = Path(paths.ROOT / "docs" / f"{name}.schema.json").read_text()
    assert json.loads(published) == json_schema(name)
