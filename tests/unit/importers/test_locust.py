"""Statistics of Locust."""

import pytest

from spikelab.importers import locust
from spikelab.importers.common import ReportError
from tests.support.reports import text_of


def test_locust_s_statistics_have_counts_rates_and_percentiles() -> None:
    stats = locust.parse(text_of("locust_stats.csv"))
    assert (stats.requests, stats.failures, stats.completed) == (150, 15, 135)
    assert stats.started_rate == 51.47714628636614
    assert stats.window_seconds == pytest.approx(2.914, rel=0.001)
    latency = stats.latency_seconds
    assert (latency.p50, latency.p95, latency.p99, latency.p99_9) == (0.012, 0.014, 0.017, 0.03)
    assert latency.max == 0.029742300997895654
    assert any("up to 5 %" in line for line in stats.warnings)


def test_locust_without_an_answer() -> None:
    row = ",Aggregated,0,0,0,0,0,0,0,0.0,0.0" + ",N/A" * 11
    header = text_of("locust_stats.csv").splitlines()[0]
    with pytest.raises(ReportError, match="there is no request in it"):
        locust.parse(f"{header}\r\n{row}\r\n")
