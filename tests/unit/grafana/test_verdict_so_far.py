"""The panel "Verdict so far": its query over runs that are known."""

from pathlib import Path

import pytest

from grafana.src.signals import load
from tests.support.promtool import check_query, needs_promtool

pytestmark = needs_promtool

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
    series = {}
    for number, verdict in enumerate(verdicts):
        labels = f'{{testid="t{number}", driver="k6"}}'
        series[f"loadtest:requests:total{labels}"] = "1+10x60"
        if verdict is not None:
            series[f"lab_slo_ok{labels}"] = f"{verdict}x60"
    check_query(tmp_path, load.OBJECTIVES_MET.query, series, {} if shown is None else {"{}": shown})
