"""What the lab, k6's scripts and Locust's each have to state for themselves is the same."""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from spikelab import paths
from spikelab.drivers import k6 as k6_driver
from spikelab.drivers.base import PhaseSummary
from spikelab.history import phase_line
from spikelab.objectives import QUANTILES
from spikelab.plans.model import Phase, Request
from spikelab.results.run import ERROR_CLASSES
from spikelab.settings import DATABASE, load_stack_settings
from spikelab.statistics.distribution import RANKS, Distribution
from spikelab.units import parse_duration
from tests.support.k6_scripts import K6, needs_k6
from tests.support.records import plain_record

sys.path.insert(0, str(paths.ROOT / "locust"))
from lib import summary
from lib.events import Region, line
from lib.otel import set_defaults
from lib.plan import Phase as LocustPhase
from lib.plan import PlanError, read_plan, seconds, statuses
from lib.tally import ERROR_CLASSES as LOCUST_CLASSES
from lib.tally import Tally

DURATIONS_FILE = paths.ROOT / "tests" / "data" / "durations.json"
DURATIONS: list[dict[str, Any]] = json.loads(DURATIONS_FILE.read_text())
VALID = [(row["text"], row["seconds"]) for row in DURATIONS if "wrong" not in row]
INVALID = [row["text"] for row in DURATIONS if "wrong" in row]
LOADS: list[tuple[str, float]] = [("rate", 1000), ("rate", 12.5), ("users", 1_000_000)]


@pytest.fixture(scope="module")
def k6() -> dict[str, Any]:
    """What k6/lib states."""
    phases = [{"name": "p", "kind": kind, "value": value, "starts_ms": 0} for kind, value in LOADS]
    given = {"VECTORS": str(DURATIONS_FILE), "PHASES": json.dumps(phases)}
    words = [word for name, value in given.items() for word in ("-e", f"{name}={value}")]
    command = [str(K6), "run", "--quiet", *words, str(paths.ROOT / "tests/unit/k6/facts.js")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    facts: dict[str, Any] = json.loads(ran.stdout)
    return facts


@pytest.mark.parametrize(("text", "wanted"), VALID)
def test_the_lab_and_locust_read_a_duration_alike(text: str, wanted: float) -> None:
    assert (parse_duration(text), seconds(text)) == (wanted, wanted)


@pytest.mark.parametrize("text", INVALID)
def test_the_lab_and_locust_refuse_an_invalid_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)
    with pytest.raises(PlanError, match="write a number with a unit"):
        seconds(text)


@needs_k6
def test_k6_reads_durations_as_the_lab_does(k6: dict[str, Any]) -> None:
    for row, found in zip(DURATIONS, k6["durations"], strict=True):
        assert found.get("seconds") == row.get("seconds"), row
        assert ("error" in found) == ("wrong" in row), row


def point(written: str) -> tuple[set[str], str]:
    """Tags of a line, in any order, and the rest of it."""
    tags, _, rest = written.partition(" ")
    return set(tags.split(",")), rest


@needs_k6
@pytest.mark.parametrize("place", range(len(LOADS)))
def test_the_lab_and_both_drivers_write_one_event_of_a_phase(
    k6: dict[str, Any], place: int
) -> None:
    """The lab writes those of a finished run again: the same points."""
    kind, value = LOADS[place]
    phase = Phase.model_validate(
        {"name": "p", "kind": kind, "value": value, "start": "0s", "duration": "9s"}
    )
    began = datetime.fromtimestamp(1, UTC)
    happened = PhaseSummary.model_construct(begun=began, ended=began + timedelta(seconds=9))
    text = LocustPhase("p", kind, value, 0, 9).text
    region = Region("t1", "p", kind, text, 1000, 10_000, ended_ms=10_000)
    for driver, written in (("k6", k6["events"][place]), ("locust", line(region, 10_000))):
        record = plain_record(testid="t1", driver=driver)
        assert point(written) == point(phase_line(record, phase, happened, spike=False))


@needs_k6
def test_a_run_by_hand_has_the_same_defaults_with_both_drivers(k6: dict[str, Any]) -> None:
    defaults = load_stack_settings().defaults
    url = {name: f"http://127.0.0.1:{defaults[f'{name}_PORT']}" for name in ("TARGET", "INFLUXDB")}
    script, locust = k6["byHand"], read_plan("steady", environ={})
    assert script["target"]["url"] == locust.url == url["TARGET"]
    assert script["events"]["url"] == locust.events_url == url["INFLUXDB"]
    assert script["events"]["database"] == locust.events_database == DATABASE
    assert script["slo"] == list(locust.slo)
    request = script["request"]
    assert request["path"] == locust.path
    assert request["method"] == locust.method == Request().method
    assert request["keep_alive"] == locust.keep_alive == Request().keep_alive
    assert request["expect"] == Request().expect
    assert locust.expect == statuses(Request().expect)
    timeout = parse_duration(Request().timeout)
    assert seconds(request["timeout"]) == locust.timeout_seconds == timeout
    for testid, driver in ((script["testid"], "k6"), (locust.testid, "locust")):
        assert re.fullmatch(rf"\d{{8}}T\d{{6}}Z-{driver}-steady-[0-9a-f]{{4}}", testid)


def test_locust_pushes_to_the_lab_s_prometheus() -> None:
    environ: dict[str, str] = {}
    set_defaults(environ, "t1")
    port = load_stack_settings().defaults["PROMETHEUS_PORT"]
    address = environ["OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"]
    assert address.startswith(f"http://127.0.0.1:{port}/")


def test_failures_are_of_the_record_s_classes() -> None:
    assert LOCUST_CLASSES == ERROR_CLASSES
    attempt = (paths.K6 / "lib" / "attempt.js").read_text()
    assert set(re.findall(r"return '(\w+)'", attempt)) == set(ERROR_CLASSES)
    options = (paths.K6 / "lib" / "options.js").read_text()
    listed = re.search(r"ERROR_CLASSES = \[(.*)\]", options)
    assert listed
    assert tuple(re.findall(r"'(\w+)'", listed[1])) == ERROR_CLASSES


@needs_k6
def test_k6_s_response_times_have_the_lab_s_ranks(k6: dict[str, Any]) -> None:
    assert [percent / 100 for percent in k6["ranks"]] == pytest.approx(RANKS)


def test_locust_s_response_times_have_the_lab_s_ranks() -> None:
    assert summary.RANKS == RANKS
    noise = Random(3)
    times = [noise.lognormvariate(-4, 1.5) for _ in range(5000)]
    for count in (0, 1, 2, 100, 5000):
        tally = Tally()
        for seconds_of_one in times[:count]:
            tally.answer(seconds_of_one, 0)
        found = Distribution(**summary._latency(tally))
        wanted = Distribution.of(times[:count])
        assert (found.count, found.ranks) == (wanted.count, list(wanted.ranks))
        assert found.seconds == pytest.approx(wanted.seconds, rel=0.0011)
        assert found.seconds[-1:] == [round(each, 9) for each in wanted.seconds[-1:]]


def test_percentiles_are_those_of_the_record() -> None:
    written = (paths.K6 / "lib" / "summary.js").read_text()
    kept = re.search(r"STATISTICS = \[(.*)\]", written)
    assert kept
    assert k6_driver._PERCENTILES.keys() == QUANTILES.keys()
    assert set(k6_driver._PERCENTILES.values()) <= set(re.findall(r"'([^']+)'", kept[1]))
