"""Inputs that were findings, or reached what no other does: a file for each parser in findings/.

A file is a list in JSON, by name; an input that is not UTF-8 stands in base64.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path

from spikelab import paths

FOLDER = paths.ROOT / "tests" / "fuzz" / "findings"


def file_of(parser: str) -> Path:
    return FOLDER / f"{parser}.json"


def read_findings(parser: str) -> dict[str, bytes]:
    """By name, in the order of the names; none where the parser has none yet."""
    file = file_of(parser)
    rows = json.loads(file.read_text()) if file.exists() else []
    return {row["name"]: _decoded(row) for row in rows}


def add_findings(parser: str, found: Mapping[str, bytes]) -> None:
    """Writes the parser's file again, with these among the others."""
    known = {**read_findings(parser), **found}
    rows = [{"name": name, **_encoded(known[name])} for name in sorted(known)]
    file_of(parser).write_text(json.dumps(rows, indent=1) + "\n")


def _encoded(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


def _decoded(row: Mapping[str, str]) -> bytes:
    return row["text"].encode() if "text" in row else b64decode(row["base64"])
