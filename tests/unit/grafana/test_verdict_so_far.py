"""The panel "Verdict so far": promtool evaluates its query over runs that are known."""

import subprocess
from pathlib import Path

import pytest
import yaml

from grafana.src.signals import load
from spikelab import paths

PROMTOOL = paths.BIN / "promtool"
pytestmark = pytest.mark.skipif(not PROMTOOL.is_file(), reason="promtool is not built: ./lab up")

HOLDS, MISSED, UNDECIDED = 1, 0, 0.5
# Of each run: what the lab says of it, from the start on; None: nothing, as of one by hand.
RUNS = {
    "one run that holds": ([1], HOLDS),
    "one that missed": ([0], MISSED),
    "one by hand, with or without failures": ([None], UNDECIDED),
    "one that holds beside one by hand": ([1, None], UNDECIDED),
    "one that missed beside one by hand": ([0, None], MISSED),
    "one that holds beside one that missed": ([1, 0], MISSED),
    "nothing": ([], None),
}


@pytest.mark.parametrize(("verdicts", "shown"), RUNS.values(), ids=RUNS)
def test_it_never_shows_one_run_s_holding_over_another(
    tmp_path: Path, verdicts: list[int | None], shown: float | None
) -> None:
    series = []
    for number, verdict in enumerate(verdicts):
        labels = f'{{testid="t{number}", driver="k6"}}'
        series.append({"series": f"loadtest:requests:total{labels}", "values": "1+10x60"})
        if verdict is not None:
            series.append({"series": f"lab_slo_ok{labels}", "values": f"{verdict}x60"})
    query = load.OBJECTIVES_MET.query
    for variable, value in {"$testid": ".*", "$driver": ".*", "$__range": "60s"}.items():
        query = query.replace(variable, value)
    wanted = [] if shown is None else [{"labels": "{}", "value": shown}]
    case = {
        "interval": "1s",
        "input_series": series,
        "promql_expr_test": [{"expr": query, "eval_time": "50s", "exp_samples": wanted}],
    }
    file = tmp_path / "case.yml"
    file.write_text(yaml.safe_dump({"evaluation_interval": "1s", "tests": [case]}))
    ran = subprocess.run(
        [PROMTOOL, "test", "rules", file], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
