"""Parsers of other tools' reports, on real ones and on broken ones."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spikelab import paths
from spikelab.importers import FORMATS, fortio, k6, locust, vegeta
from spikelab.importers.common import Imported, Report, ReportError, ReportSource, build_record
from spikelab.units import parse_go_duration

DATA = paths.ROOT / "tests" / "data" / "imports"
FILES = {
    "vegeta.txt": "vegeta",
    "vegeta_refused.txt": "vegeta",
    "vegeta.json": "vegeta",
    "k6_summary_export.json": "k6",
    "k6_handle_summary.json": "k6",
    "k6_machine_readable.json": "k6",
    "locust_stats.csv": "locust",
    "fortio.json": "fortio",
}


def text_of(name: str) -> str:
    return (DATA / name).read_text()


def changed(name: str, **values: Any) -> str:
    return json.dumps({**json.loads(text_of(name)), **values})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1.2s", 1.2),
        ("350.1ms", 0.3501),
        ("1m0.5s", 60.5),
        ("1h2m3s", 3723.0),
        ("105.158µs", 0.000105158),
        ("105.158\u03bcs", 0.000105158),
        ("105.158us", 0.000105158),
        ("12ns", 1.2e-8),
        ("0s", 0.0),
    ],
)
def test_go_s_durations(text: str, seconds: float) -> None:
    assert parse_go_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "1", "s", "1.s", "-1s", "1s 2ms", "1d", "9" * 9 + "h"])
def test_what_is_no_duration_of_go(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a duration|is longer"):
        parse_go_duration(text)


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


def test_k6_drops() -> None:
    document = json.loads(text_of("k6_summary_export.json"))
    document["metrics"]["dropped_iterations"] = {"count": 7, "rate": 3.5}
    assert k6.parse(json.dumps(document)).dropped == 7


@pytest.mark.parametrize("metric", ["http_reqs", "http_req_failed", "http_req_duration"])
def test_k6_without_http(metric: str) -> None:
    document = json.loads(text_of("k6_summary_export.json"))
    del document["metrics"][metric]
    with pytest.raises(ReportError, match=f"it has no metric {metric}"):
        k6.parse(json.dumps(document))


def test_locust() -> None:
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


def test_fortio() -> None:
    result = fortio.parse(text_of("fortio.json"))
    assert (result.requests, result.failures, result.completed) == (100, 20, 100)
    assert result.errors.by_class() == {"http_5xx": 20}
    assert result.offered_rate == 50
    assert result.started_rate == pytest.approx(49.72, rel=0.001)
    assert result.latency_seconds.p95 == 0.011204969333333334
    assert result.url == "http://127.0.0.1:38003/fail"


def test_a_percentile_from_fortio_s_histogram_is_the_one_that_it_prints() -> None:
    printed = fortio.parse(text_of("fortio.json")).latency_seconds
    document = json.loads(text_of("fortio.json"))
    document["DurationHistogram"]["Percentiles"] = []
    computed = fortio.parse(json.dumps(document)).latency_seconds
    for key, value in computed.model_dump().items():
        assert value == pytest.approx(getattr(printed, key), rel=1e-12)


def test_fortio_s_closed_loop_offers_no_rate() -> None:
    assert fortio.parse(changed("fortio.json", RequestedQPS="max")).offered_rate is None


def test_nighthawk_s_counts_are_strings_and_of_good_answers_alone() -> None:
    document = json.loads(text_of("fortio.json"))
    document["RetCodes"] = {"200": "80"}
    document["RequestedQPS"] = 50
    document["DurationHistogram"]["Count"] = "100"
    for bucket in document["DurationHistogram"]["Data"]:
        bucket["Count"] = str(bucket["Count"])
    del document["ErrorsDurationHistogram"], document["DisableKeepAlive"]
    result = fortio.parse(json.dumps(document))
    assert (result.requests, result.failures, result.completed) == (100, 20, 80)
    assert result.errors.by_class() == {"other": 20}
    assert result.offered_rate == 50


@pytest.mark.parametrize("name", FILES)
def test_no_other_format_takes_it(name: str) -> None:
    for other in set(FORMATS) - {FILES[name]}:
        with pytest.raises(ReportError):
            FORMATS[other].parse(text_of(name))


JUNK = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        ["-1", "0", "1e999", "NaN", "null", "[]", "{}", "N/A", "9" * 400, "%", ",", ":", "ns", '"']
    ),
)


@st.composite
def mutations(draw: st.DrawFn) -> tuple[str, str]:
    """A real report with a stretch replaced, up to three times."""
    name = draw(st.sampled_from(sorted(FILES)))
    text = text_of(name)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 12)))
        text = text[:start] + draw(JUNK) + text[end:]
    return FILES[name], text


def takes(format_name: str, text: str) -> None:
    """A record, or a ReportError: nothing else."""
    try:
        report = FORMATS[format_name].parse(text)
    except ReportError as error:
        assert "\n" not in str(error)
        return
    assert isinstance(report, Report)
    source = ReportSource(DATA / "vegeta.txt", "sweep", "on", 100.0)
    record = build_record(Imported(format_name, source, report, "0" * 12), [], None)
    json.dumps(record.to_json(), allow_nan=False)


@settings(max_examples=600, deadline=None)
@given(mutations())
def test_a_mutated_report_is_a_record_or_one_line(mutated: tuple[str, str]) -> None:
    takes(*mutated)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_mutated_value_is_a_record_or_one_line(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(n for n in FILES if n.endswith(".json"))))
    document = json.loads(text_of(name))
    leaf = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just([])
    )
    part: Any = document
    while True:
        key = data.draw(
            st.sampled_from(range(len(part)) if isinstance(part, list) else sorted(part))
        )
        if not isinstance(part[key], dict | list) or not part[key] or data.draw(st.booleans()):
            break
        part = part[key]
    part[key] = data.draw(leaf)
    takes(FILES[name], json.dumps(document))
