"""Reports of vegeta, as text and as JSON."""

from datetime import UTC, datetime

import pytest

from spikelab.importers import vegeta
from tests.support.reports import changed, text_of


def test_vegeta_says_the_same_as_text_and_as_json() -> None:
    text, document = vegeta.parse(text_of("vegeta.txt")), vegeta.parse(text_of("vegeta.json"))
    assert text.started is None
    assert document.started == datetime(2026, 11, 21, 9, 38, 2, 707492, UTC)
    assert (text.requests, text.failures, text.completed) == (200, 15, 200)
    assert (document.requests, document.failures, document.completed) == (200, 15, 200)
    assert text.errors == document.errors
    assert text.started_rate == pytest.approx(document.started_rate, rel=1e-4)
    assert text.achieved_rate == pytest.approx(document.achieved_rate, rel=1e-4)
    assert text.window_seconds == pytest.approx(document.window_seconds, rel=1e-3)
    for key, value in text.latency_seconds.model_dump(exclude_none=True).items():
        assert value == pytest.approx(getattr(document.latency_seconds, key), rel=1e-3)
    assert text.latency_seconds.p99_9 is None


def test_vegeta_without_an_answer() -> None:
    refused = vegeta.parse(text_of("vegeta_refused.txt"))
    assert (refused.requests, refused.failures, refused.completed) == (50, 50, 0)
    assert refused.errors.by_class() == {"refused": 50}


def test_vegeta_s_counts_decide_and_its_ratio_only_where_they_do_not_fit() -> None:
    text = text_of("vegeta.txt")
    assert not any("do not fit" in line for line in vegeta.parse(text).warnings)
    doubtful = vegeta.parse(text.replace("200:185", "200:184"))
    assert (doubtful.failures, doubtful.errors.by_class()) == (15, {"other": 15})
    assert any("do not fit" in line for line in doubtful.warnings)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (['Get "http://a": dial tcp: i/o timeout'], "dial_timeout"),
        (["read tcp 1.2.3.4: read: connection reset by peer"], "reset"),
        (
            ['Get "http://a": net/http: request canceled (Client.Timeout exceeded)'],
            "request_timeout",
        ),
        (["connection refused", "connection reset by peer"], "other"),
        (["something else"], "other"),
    ],
)
def test_vegeta_s_reason_counts_where_it_is_the_only_one(lines: list[str], reason: str) -> None:
    codes = {"200": 150, "0": 35, "503": 15}
    errors = ["503 Service Unavailable", *lines]
    text = changed("vegeta.json", status_codes=codes, success=0.75, errors=errors)
    found = vegeta.parse(text)
    assert found.errors.by_class() == {reason: 35, "http_5xx": 15}
    assert found.completed == 165
