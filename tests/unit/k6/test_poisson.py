"""k6/*.js make requests that come as a Poisson process: counted where they arrive."""

from itertools import cycle, pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats

from spikelab.drivers.base import PhaseSummary
from spikelab.drivers.k6 import read_summary
from tests.support.http_server import Server
from tests.support.k6_scripts import K6Runs, needs_k6, plan

pytestmark = [needs_k6, pytest.mark.alone]

RATE, SECONDS = 50, 20
# A right process fails one such test of a thousand; a driver on a busy machine is late by some ms,
# where the mean gap is 20.
UNLIKELY = 0.001


def poisson(value: float, duration: str, **keys: object) -> dict[str, Any]:
    phase = {"name": "p", "kind": "rate", "value": value, "duration": duration}
    return phase | {"arrival": "poisson"} | keys


def found(k6: K6Runs, server: Server, *phases: dict[str, Any], **keys: Any) -> list[PhaseSummary]:
    run = k6.run("steady", plan(server, list(phases)) | {"slo": ["p95 < 250ms"]} | keys)
    starts = {phase["name"]: float(phase.get("start", "0s")[:-1]) for phase in phases}
    return read_summary(run.summary_file, starts)


def test_gaps_are_exponential_and_independent_and_counts_are_poisson(
    k6: K6Runs, server: Server
) -> None:
    (phase,) = found(k6, server, poisson(RATE, f"{SECONDS}s"))
    assert (phase.dropped, phase.failures) == (0, 0)
    came = np.array(sorted(each.came for each in server.requests))
    # Four deviations of a count whose variance is its mean.
    assert len(came) == phase.requests == pytest.approx(1000, abs=4 * 1000**0.5)
    gaps = np.diff(came)
    assert stats.kstest(gaps, "expon", args=(0, 1 / RATE)).pvalue > UNLIKELY
    assert abs(stats.pearsonr(gaps[:-1], gaps[1:]).statistic) < 4 / len(gaps) ** 0.5
    # Also over what is short and what is long against the blocks of 100 ms that k6 starts them in.
    for length in (0.03, 0.07, 0.1, 0.25, 0.5):
        edges = np.arange(came[0], came[-1], length)
        counts, _ = np.histogram(came, edges)
        dispersion = counts.var(ddof=1) / counts.mean()
        chance = stats.chi2(len(counts) - 1)
        low, high = chance.ppf([UNLIKELY / 2, 1 - UNLIKELY / 2]) / (len(counts) - 1)
        assert low < dispersion < high, length


def test_they_come_within_their_phase(k6: K6Runs, server: Server) -> None:
    phases = [poisson(100, "2s", start="0s"), poisson(50, "2s", start="2s") | {"name": "q"}]
    first, second = found(k6, server, *phases)
    assert first.requests == pytest.approx(200, abs=60)
    assert second.requests == pytest.approx(100, abs=45)
    assert first.started >= first.begun
    assert (second.begun - first.begun).total_seconds() == 2
    came = sorted(each.came for each in server.requests)
    assert came[-1] - came[0] == pytest.approx(4, abs=0.3)
    assert (second.ended - second.begun).total_seconds() == pytest.approx(2, abs=0.2)


def test_two_runs_have_arrivals_of_their_own(k6: K6Runs, server: Server) -> None:
    gaps = []
    for _ in range(2):
        server.requests.clear()
        found(k6, server, poisson(100, "1s"))
        came = sorted(each.came for each in server.requests)
        gaps.append([round(b - a, 2) for a, b in pairwise(came)])
    assert gaps[0] != gaps[1]


def test_due_times_survive_drops(k6: K6Runs, server: Server) -> None:
    server.delays = cycle([1.0, 0.0, 0.0, 0.0])
    (phase,) = found(k6, server, poisson(100, "4s", most_users=30))
    assert phase.dropped > 10
    assert phase.latency is not None
    assert phase.latency.percentile_seconds(0.5) < 0.15
    assert phase.latency_parts_seconds is not None
    assert phase.latency_parts_seconds.lateness is not None
    assert phase.latency_parts_seconds.lateness < 0.05


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        (poisson(5, "1s", jitter="1s"), "comes by chance without jitter"),
        (poisson(5, "1s", arrival="even"), "give constant or poisson"),
        (poisson(5, "1s", kind="users"), "and to a rate that stays"),
    ],
)
def test_it_is_for_rates_that_stay(
    k6: K6Runs, server: Server, phase: dict[str, Any], said: str
) -> None:
    run = k6.run("steady", plan(server, [phase]))
    assert run.code == 108
    assert said in run.said


def test_by_hand(k6: K6Runs, server: Server) -> None:
    by_hand = {"BASE_URL": server.url, "INFLUXDB_URL": "", "DURATION": "2s"}
    run = k6.run("steady", {**by_hand, "RATE": 100, "ARRIVAL": "poisson"})
    assert run.code == 0, run.said
    assert run.count("attempts") == pytest.approx(200, abs=60)
    assert "and to a rate that stays" in k6.run("ramp", {**by_hand, "ARRIVAL": "poisson"}).said
