"""Summaries of k6, in each of its forms."""

import json

import pytest

from spikelab.importers import k6
from spikelab.importers.common import ReportError
from tests.support.reports import text_of


@pytest.mark.parametrize("form", ["summary_export", "handle_summary", "machine_readable"])
def test_k6_in_each_form(form: str) -> None:
    summary = k6.parse(text_of(f"k6_{form}.json"))
    assert summary.requests in (100, 101)
    assert (summary.failures, summary.completed) == (10, summary.requests - 10)
    assert summary.started_rate == pytest.approx(50, rel=0.01)
    assert summary.window_seconds == pytest.approx(2, rel=0.01)
    # Of good answers, in seconds.
    assert summary.latency_seconds.p95 == pytest.approx(0.0109, rel=0.02)
    exact = form == "handle_summary"  # which asked for more percentiles
    assert (summary.latency_seconds.p99 is None) is not exact
    assert (summary.latency_seconds.p99_9 is None) is not exact
    assert (summary.version, summary.started is None) == (
        ("2.2.0", False) if form == "machine_readable" else (None, True)
    )


def test_k6_s_names_as_its_schema_has_them() -> None:
    text = text_of("k6_machine_readable.json")
    named = text.replace("k6_version", "k6Version").replace("generated_at", "generatedAt")
    assert k6.parse(named) == k6.parse(text)


def test_k6_s_dropped_iterations_are_counted() -> None:
    document = json.loads(text_of("k6_summary_export.json"))
    document["metrics"]["dropped_iterations"] = {"count": 7, "rate": 3.5}
    assert k6.parse(json.dumps(document)).dropped == 7


@pytest.mark.parametrize("metric", ["http_reqs", "http_req_failed", "http_req_duration"])
def test_k6_s_summary_without_http_is_refused(metric: str) -> None:
    document = json.loads(text_of("k6_summary_export.json"))
    del document["metrics"][metric]
    with pytest.raises(ReportError, match=f"it has no metric {metric}"):
        k6.parse(json.dumps(document))
