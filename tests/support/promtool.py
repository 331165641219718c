"""Queries, evaluated by promtool over series that a test writes down."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from spikelab import paths

PROMTOOL = paths.BIN / "promtool"
needs_promtool = pytest.mark.skipif(
    not PROMTOOL.is_file(), reason="promtool is not built: ./lab up"
)
EVERYTHING = dict.fromkeys(("$testid", "$driver", "$phase", "$name"), ".*")


def check_query(
    folder: Path,
    query: str,
    series: Mapping[str, str],
    wanted: Mapping[str, float],
    chosen: Mapping[str, str] = EVERYTHING,
) -> None:
    """What a dashboard's query gives after 50 s of these series, one value a second: a value for
    each set of labels. `chosen`: in the dashboard's variables."""
    variables = {"$__interval_ms": "60000", "$__interval": "60s", "$__range": "60s", **chosen}
    for variable, value in variables.items():
        query = query.replace(variable, value)
    case = {
        "interval": "1s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {"expr": query, "eval_time": "50s", "exp_samples": _samples(wanted)},
        ],
    }
    file = folder / "case.yml"
    file.write_text(yaml.safe_dump({"evaluation_interval": "1s", "tests": [case]}))
    ran = subprocess.run(
        [PROMTOOL, "test", "rules", file], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def _samples(wanted: Mapping[str, float]) -> Sequence[Mapping[str, object]]:
    return [{"labels": labels, "value": value} for labels, value in wanted.items()]
