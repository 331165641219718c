"""A figure reads the same on the console and in a report: missing, rounded or infinite."""

import csv
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from spikelab import paths
from spikelab.cli import output
from spikelab.console import out
from spikelab.report import run_tables, tables
from spikelab.report.formats import rendered
from spikelab.report.tables import Column, Marked, Table, number, print_table, table, text
from spikelab.results.comparison import ComparisonRecord, Noise, PairFigures, Result, Side
from spikelab.results.lookup import find
from spikelab.results.run import Errors, Latency, LatencyParts, Lateness, RunRecord, now
from tests.support.records import plain_record, plain_step


@pytest.fixture(autouse=True)
def results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    return tmp_path


def printed(show: Callable[[], None]) -> str:
    with out.capture() as captured:
        show()
    return captured.get()


def words_of(line: str) -> list[str]:
    """The cells of a printed or a Markdown row."""
    return [cell.strip() for cell in line.replace("|", "  ").split("  ") if cell.strip()]


def row(page: str, first: str) -> list[str]:
    """The cells of the line that begins with this one."""
    return next(cells for line in page.splitlines() if (cells := words_of(line))[:1] == [first])


def refused() -> RunRecord:
    """A run that got no good answer: there is no p95 of good answers; that with failures is
    infinite."""
    step = plain_step(failures=100, errors=Errors(refused=100), latency_seconds=Latency())
    record = plain_record(step, testid="20261121T010203Z-refused-0a1b", verdict="fail")
    record.save()
    return record


def test_a_percentile_without_a_good_answer_is_missing_and_not_infinite() -> None:
    record = refused()
    listed = printed(lambda: output.show_runs([record]))
    assert row(listed, record.testid)[-2:] == ["–", "fail"]
    report = rendered(find(record.testid), "md")
    for page in (listed, report):
        assert "∞" not in page


def comparison(**changes: Any) -> ComparisonRecord:
    """p95 was infinite on A's side, and nobody knows B's."""
    pair = PairFigures(repeat=1, a_run="a", b_run="b", a="infinite", b=None)
    result = Result(
        metric="p95",
        about="",
        unit="s",
        better="lower",
        place={},
        pairs=[pair],
        a="infinite",
    )
    figures: dict[str, Any] = {"results": [result], "noise": None, **changes}
    record = ComparisonRecord(
        comparison="20261121T010203Z-compare-0a1b",
        created=now(),
        plan="mine",
        primary="p95",
        margin=0.05,
        a=Side(name="a", plan="mine", runs=["a"]),
        b=Side(name="b", plan="mine", runs=["b"]),
        interleaved=None,
        verdict=None,
        summary="no verdict: two single runs",
        **figures,
    )
    record.save()
    return record


def test_what_failures_reach_is_infinite_and_what_is_unknown_is_missing() -> None:
    record = comparison()
    console = row(printed(lambda: output.show_comparison(record)), "p95")
    report = row(rendered(find(record.comparison), "md"), "p95")
    assert console == ["p95", "∞", "–", "–"]
    assert report == console


def test_identical_arms_that_would_need_too_many_pairs_say_so_in_a_report_too() -> None:
    noise = [
        Noise(
            metric="p95",
            pairs=6,
            log_deviation=0.3,
            smallest_difference=1.5,
            pairs_needed=None,
        )
    ]
    record = comparison(results=[], noise=noise)
    console = row(printed(lambda: output.show_comparison(record)), "p95")
    report = row(rendered(find(record.comparison), "md"), "p95")
    assert console == report == ["p95", "6", "30 %", "50 %", "over 1,000"]


def test_rates_and_shares_are_rounded_alike() -> None:
    step = plain_step(
        requests=30_000, failures=1, started_rate=1234.56, achieved_rate=850.0, dropped=0
    )
    record = plain_record(step, testid="20261121T010203Z-round-0a1b")
    record.save()
    console = printed(lambda: output.show_rates([record], {}))
    assert row(console, "100")[1:4] == ["1,235", "850", "99.996 %"]
    report = rendered(find(record.testid), "md")
    assert row(report, step.name)[2:4] == ["1,235", "99.996 %"]


def late_and_early() -> RunRecord:
    """A run of two steps, of whose second nobody knows how late the driver began requests."""
    known = {"waiting_for_connection": 0.0, "connecting": 0.0003, "tls": 0.0, "sending": 0.0001}
    shares = {**known, "waiting": 0.02, "receiving": 0.0006}
    steps = [
        plain_step(
            name=name,
            phase=name,
            latency_mean_seconds=0.025,
            latency_parts_seconds=LatencyParts(**shares, lateness=lateness),
            lateness=Lateness(p50=0.0001, p99=p99, max=0.1),
        )
        for name, lateness, p99 in (("low", 0.004, 0.0012), ("high", None, 0.0034))
    ]
    record = plain_record(*steps, testid="20261121T010203Z-parts-0a1b")
    record.save()
    return record


def test_steps_show_how_late_the_driver_was_and_of_what_response_times_consist() -> None:
    record = late_and_early()
    console = printed(lambda: output.show_results([record]))
    report = rendered(find(record.testid), "md")
    high = ["high", "–", "300 µs", "100 µs", "20 ms", "600 µs", "25 ms"]
    for page in (console, report):
        found = [cells for line in page.splitlines() if (cells := words_of(line))[:1] == ["high"]]
        assert high in found
        assert any("3.4 ms" in cells for cells in found)
    assert "Latency is response time, from when a request was due or begun." in report
    # No user waited for a connection, and there was no TLS.
    heads = ["lateness", "connecting", "sending", "waiting", "receiving", "mean"]
    assert row(report, "step")[-1] == "why"
    assert ["step", *heads] in [words_of(line) for line in report.splitlines()]


def test_a_run_without_response_times_says_what_its_latencies_are() -> None:
    record = late_and_early()
    record.latency_basis = "request"
    record.save()
    console = printed(lambda: output.show_results([record]))
    for page in (console, rendered(find(record.testid), "md")):
        assert "the request's own time, from its beginning" in page


def test_the_csv_has_the_driver_s_lateness_and_the_basis() -> None:
    record = late_and_early()
    found = next(csv.DictReader(StringIO(rendered(find(record.testid), "csv"))))
    assert (found["lateness_p99_seconds"], found["latency_basis"]) == ("0.0034", "response time")
    assert found["completed_rate"] == ""
    record.steps = [plain_step(completed_rate=99.5)]
    record.save()
    found = next(csv.DictReader(StringIO(rendered(find(record.testid), "csv"))))
    assert (found["lateness_p99_seconds"], found["completed_rate"]) == ("", "99.5")


def test_a_verdict_has_its_colour_but_its_reason_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(file=StringIO(), force_terminal=True, color_system="standard")
    monkeypatch.setattr(tables, "out", terminal)
    rows = [("pass", "fail (p95 was late)", Marked("no", "bad"), "fail-over")]
    with terminal.capture() as captured:
        print_table(Table("", ("plan", "verdict", "as predicted", "variant"), rows))
    line = captured.get().splitlines()[1]
    assert re.findall(r"\x1b\[31m(.*?) *\x1b\[0m", line) == ["fail", "no"]
    assert "\x1b[32m" not in line


def test_an_optional_column_that_no_row_has_is_left_out() -> None:
    columns = [
        text("name", str),
        number("known", lambda item: "1" if item == "a" else "–"),
        Column("unknown", lambda item: "–", optional=True),
        Column("none", lambda item: "0", optional=True),
    ]
    found = table("", columns, ["a", "b"])
    assert list(found.columns) == ["name", "known"]
    assert [list(cells) for cells in found.rows] == [["a", "1"], ["b", "–"]]
    assert found.numbers == {1}


def test_the_rest_of_a_difference_is_no_time() -> None:
    """Of a spike, whose users are never late."""
    waited = LatencyParts(lateness=1.09e-14, waiting=0.2)
    found = run_tables.parts([plain_record(plain_step(latency_parts_seconds=waited))])
    assert found
    assert not any("e-" in str(cell) for cell in found.rows[0])
