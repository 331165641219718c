"""Reports of Fortio, and of Nighthawk in Fortio's form."""

import json

import pytest

from spikelab.importers import fortio
from tests.support.reports import changed, text_of


def test_a_report_of_fortio_has_counts_rates_and_percentiles() -> None:
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
