"""Writes docs/run.schema.json: `python -m spikelab.schema` after a change of spikelab/record.py."""

from spikelab import paths
from spikelab.record import json_schema, write_json

if __name__ == "__main__":
    write_json(paths.ROOT / "docs" / "run.schema.json", json_schema())
