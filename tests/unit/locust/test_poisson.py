"""Locust's arrivals by chance are a Poisson process: counted where they arrive."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tests.support.http_server import Server
from tests.support.locust_scripts import plan_file, run

pytestmark = pytest.mark.alone

RATE, SECONDS = 50, 20
# A right process fails one such test of a thousand; a driver on a busy machine is late by some ms,
# where the mean gap is 20.
UNLIKELY = 0.001


@pytest.mark.parametrize("processes", [[], ["--processes=2"]])
def test_gaps_are_exponential_and_independent_and_counts_are_poisson(
    tmp_path: Path, server: Server, processes: list[str]
) -> None:
    # Each of ten users has two under way in the mean: one that waited would send half as many.
    server.delay_seconds = 0.4
    phase = {"name": "p", "kind": "rate", "value": RATE, "duration": f"{SECONDS}s"}
    plan = plan_file(tmp_path, server, [{**phase, "arrival": "poisson"}], "/hello")
    code, said = run(server, "hello.py", ["--throughput=5", *processes], LAB_PLAN=plan)
    assert code == 0, said
    (measured,) = json.loads((tmp_path / "summary.json").read_text())["phases"]
    came = np.array(sorted(each.came for each in server.requests))
    assert len(came) == measured["requests"]
    # Four deviations of a count whose variance is its mean; Locust takes a while to start users.
    assert SECONDS - 3 < came[-1] - came[0] < SECONDS + 1
    wanted = RATE * (came[-1] - came[0])
    assert len(came) == pytest.approx(wanted, abs=4 * wanted**0.5)
    gaps = np.diff(came)
    assert stats.kstest(gaps, "expon", args=(0, gaps.mean())).pvalue > UNLIKELY
    assert abs(stats.pearsonr(gaps[:-1], gaps[1:]).statistic) < 4 / len(gaps) ** 0.5
    for length in (0.05, 0.25, 0.5):
        counts, _ = np.histogram(came, np.arange(came[0], came[-1], length))
        dispersion = counts.var(ddof=1) / counts.mean()
        chance = stats.chi2(len(counts) - 1)
        low, high = chance.ppf([UNLIKELY / 2, 1 - UNLIKELY / 2]) / (len(counts) - 1)
        assert low < dispersion < high, length
    # From when each was due; it did not wait for the one before.
    assert measured["latency"]["seconds"][0] >= 0.4
    assert measured["latency_parts_seconds"]["lateness"] < 0.05
