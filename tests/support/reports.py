"""Real reports of other tools: tests/data/imports."""

import json
from typing import Any

from spikelab import paths

DATA = paths.ROOT / "tests" / "data" / "imports"


def text_of(name: str) -> str:
    return (DATA / name).read_text()


def changed(name: str, **values: Any) -> str:
    """A report in JSON with other values at its top."""
    return json.dumps({**json.loads(text_of(name)), **values})
