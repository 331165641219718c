"""`spike-raw` asks for single samples: are they all there, and is what is missing seen?

The samples are written as k6 writes them, at a time of their own, so none is by chance.
"""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from grafana.lint.reading import all_dashboards, panel_queries
from grafana.src.signals import raw
from spikelab import paths
from spikelab.signals import Signal
from spikelab.stores import line
from tests.stack.dashboards import View, interpolated
from tests.support.lab import Lab

BOARD = all_dashboards()["spike-raw"]
# Long before any run of this lab; each test has an hour from here on.
HOUR_MS = 3_600_000
FIRST_MS = 1_700_000_000_000
GOOD = {"scenario": "spike", "name": "hello", "expected_response": "true", "status": "200"}
FAILED = {
    "scenario": "spike",
    "name": "hello",
    "expected_response": "false",
    "status": "0",
    "error_code": "1211",
}


@pytest.fixture
def hour(lab: Lab, request: pytest.FixtureRequest) -> View:
    """An hour of this test's own, seen live: whatever testid, or none."""
    tests = [item.name for item in request.session.items]
    start = FIRST_MS + tests.index(request.node.name) * HOUR_MS
    return View(start, start + HOUR_MS - 1)


def asked(lab: Lab, signal: Signal, view: View) -> list[dict[str, Any]]:
    """What the dashboard's panel of this signal gets from InfluxDB."""
    wanted = signal.query
    (query,) = [query for query in panel_queries(BOARD) if query.text == wanted]
    return lab.influxdb.query(interpolated(query, BOARD, view).text)


def write(lab: Lab, tags: dict[str, str], durations_ms: Sequence[float], view: View) -> None:
    """One request a second, or as dense as an hour asks for."""
    step = HOUR_MS // max(len(durations_ms), 3600)
    lines = [
        line("http_req_duration", tags, {"value": duration}, view.start_ms + place * step)
        for place, duration in enumerate(durations_ms)
    ]
    lab.influxdb.write("\n".join(lines))


def test_each_request_of_a_run_without_a_testid_is_a_point(lab: Lab, hour: View) -> None:
    write(lab, GOOD, [5000.0 + n for n in range(300)], hour)
    write(lab, FAILED, [0.0] * 20, hour)
    rows = asked(lab, raw.RAW_DURATIONS, hour)
    assert sorted(row["answered"] for row in rows if row["answered"] is not None) == [
        5000.0 + n for n in range(300)
    ]
    assert sum(1 for row in rows if row["failed"] is not None) == 20
    times = [row["time"] for row in rows]
    assert times == sorted(times), "a graph needs its points in order"


def test_of_many_requests_a_choice_from_the_whole_time_is_drawn(lab: Lab, hour: View) -> None:
    write(lab, {**GOOD, "testid": "many"}, [1.0] * 20_000, hour)
    write(lab, {**FAILED, "testid": "many"}, [30_000.0] * 7, hour)
    rows = asked(lab, raw.RAW_DURATIONS, hour)
    answered = [row["time"] for row in rows if row["answered"] is not None]
    assert len(answered) == raw.MOST_POINTS
    # Each quarter of the time has a quarter of the points, or nearly.
    middle = sum(1 for time in answered if time < hour.start_ms + HOUR_MS // 2)
    assert 0.45 < middle / len(answered) < 0.55
    assert sum(1 for row in rows if row["failed"] is not None) == 7, "failures are all drawn"


def test_percentiles_are_a_sample_s_own_value(lab: Lab, hour: View) -> None:
    write(lab, GOOD, [float(n) for n in range(1, 1001)], hour)
    write(lab, FAILED, [1e9] * 50, hour)
    found = [asked(lab, signal, hour)[0] for signal in raw.RAW_PERCENTILES]
    assert [row.get("percentile", row.get("max")) for row in found] == [
        500,
        900,
        950,
        990,
        999,
        1000,
    ]


def test_a_second_that_was_not_written_is_a_hole(lab: Lab, hour: View) -> None:
    seconds = [*range(10), *range(15, 30)]
    lab.influxdb.write(
        "\n".join(
            line("vus", {"testid": "holes"}, {"value": 5.0}, hour.start_ms + 1000 * second)
            for second in seconds
        )
    )
    minute = View(hour.start_ms, hour.start_ms + 60_000)
    gaps = {row["time"] - hour.start_ms: row["max"] for row in asked(lab, raw.SAMPLE_GAP, minute)}
    assert gaps.pop(15_000) == 6000, "from the last sample before to the first after"
    assert set(gaps.values()) == {1000}


def test_requests_are_counted_by_how_they_ended(lab: Lab, hour: View) -> None:
    write(lab, GOOD, [1.0] * 5, hour)
    write(lab, FAILED, [0.0] * 3, hour)
    rows = asked(lab, raw.RAW_OUTCOMES, hour)
    assert {(row["error_code"], row["status"]): row["requests"] for row in rows} == {
        ("", "200"): 5,
        ("1211", "0"): 3,
    }


def test_every_error_code_of_the_documentation_has_a_meaning() -> None:
    page = (paths.ROOT / "docs" / "connections.md").read_text(encoding="utf-8")
    codes = set(re.findall(r"\| (1\d{3}) \|", page))
    assert codes and codes <= set(raw.ERROR_CODES)
