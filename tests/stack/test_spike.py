"""The Tomcat spike ladder on the real stack: S1's rungs, counted on the server's side."""

import itertools
from datetime import datetime
from typing import Any

import pytest

from spikelab.machine import USER_BYTES
from spikelab.prediction.check import within
from spikelab.results.run import RunRecord
from tests.support.lab import Lab, errors_in_record, errors_in_series


def target(**settings: int) -> list[str]:
    return [
        word for name, value in settings.items() for word in ("--target-set", f"{name}={value}")
    ]


SERVICE_SECONDS = 2
# Answers of 2 s instead of the 5 s that plans/tomcat-ladder.yaml takes.
FASTER = ("--set", f"request.path=/hello?ms={1000 * SERVICE_SECONDS}")


@pytest.fixture(scope="module")
def spike(lab: Lab) -> dict[str, Any]:
    """1,000 users on 200 threads."""
    return lab.run("tomcat-spike", *FASTER)


def test_1000_users_on_200_threads_are_answered_in_five_waves(spike: dict[str, Any]) -> None:
    record = spike
    step = record["steps"][0]
    assert (step["requests"], step["failures"]) == (1000, 0)
    assert record["verdict"] == "pass"
    assert [wave["answers"] for wave in step["waves"]] == [200] * 5
    at = [wave["at_seconds"] for wave in step["waves"]]
    assert [later - earlier for earlier, later in itertools.pairwise(at)] == pytest.approx(
        [SERVICE_SECONDS] * 4, abs=0.5
    )
    assert step["latency_seconds"]["max"] == pytest.approx(5 * SERVICE_SECONDS, abs=2.5)
    assert record["connections"]["established_peak"] == 1000
    assert within(RunRecord.model_validate(record))


def test_the_normalised_rate_adds_up_to_the_number_of_users(
    lab: Lab, spike: dict[str, Any]
) -> None:
    window = 'sum(sum_over_time(loadtest:requests:rate{testid="%s"}[5m]))'
    assert lab.prometheus.value(window % spike["testid"]) == 1000


def test_the_wait_is_in_the_worker_queue_and_not_in_the_server_s_own_timer(
    lab: Lab, spike: dict[str, Any]
) -> None:
    record = spike
    # Four waves are served before the last one; buckets are 2.2 % wide.
    assert record["queue_wait_seconds"]["max"] == pytest.approx(4 * SERVICE_SECONDS, abs=1)
    step = record["steps"][0]
    assert step["server_mean_seconds"] == pytest.approx(SERVICE_SECONDS, abs=0.3)
    # Waves after 1, 2, … 5 service times: the mean user waited 2 of them for a worker.
    assert step["latency_mean_seconds"] == pytest.approx(3 * SERVICE_SECONDS, abs=1)
    worst = lab.prometheus.value(
        'max(max_over_time(http_server_requests_seconds_max{uri="/hello"}[30s]))',
        datetime.fromisoformat(record["ended"]),
    )
    # It remembers for minutes, and other tests' answers take up to 5 s; this run's longest wait
    # alone took more.
    assert worst is not None
    assert SERVICE_SECONDS - 0.1 < worst < 6 < record["queue_wait_seconds"]["max"]


def test_the_phase_is_an_event_with_its_real_end(lab: Lab, spike: dict[str, Any]) -> None:
    of_the_run = f"WHERE testid = '{spike['testid']}'"
    (event,) = lab.influxdb.query(f"SELECT * FROM events {of_the_run}")
    assert (event["phase"], event["driver"], event["state"]) == ("spike", "k6", "closed")
    # A sample's time is its answer's.
    samples = lab.influxdb.query(f'SELECT "value" FROM http_req_duration {of_the_run}')
    first_ms = min(sample["time"] - sample["value"] for sample in samples)
    last_ms = max(sample["time"] for sample in samples)
    # Both times are in whole milliseconds. On a busy machine 1,000 users take a while to begin.
    assert event["time"] - 1 <= first_ms <= event["time"] + 5000
    assert event["timeEnd"] == pytest.approx(last_ms, abs=1000)


def test_waits_are_those_of_this_run_also_when_it_restarted_the_target(
    lab: Lab, spike: dict[str, Any]
) -> None:
    fewer = target(TOMCAT_MAX_THREADS=100)
    second = lab.run("tomcat-spike", "--set", "users=300", *FASTER, *fewer)
    for record, waves in ((spike, 5), (second, 3)):
        waited = (waves - 1) * SERVICE_SECONDS
        assert record["queue_wait_seconds"]["max"] == pytest.approx(waited, abs=1)


def test_the_smallest_server_holds_three_connections_and_three_users_succeed(lab: Lab) -> None:
    one = target(
        TOMCAT_MAX_THREADS=1,
        TOMCAT_MAX_CONNECTIONS=1,
        TOMCAT_ACCEPT_COUNT=1,
        # The next one is served when an idle connection is closed: after the last moment (15 s) at
        # which a user tries again to connect, before k6 gives up (30 s).
        TOMCAT_KEEP_ALIVE_TIMEOUT=16_000,
    )
    # Answers after 1, 18 and 35 s; a fourth would come after 52.
    load = ("users=10", "request.path=/hello?ms=1000", "request.timeout=45s")
    sets = (f"--set={value}" for value in load)
    record = lab.run("tomcat-spike", *sets, *one, exit_code=99)
    assert record["connections"]["predicted"] == 3
    assert record["connections"]["established_peak"] == 3
    assert record["connections"]["policy"] == "keep-alive"
    step = record["steps"][0]
    assert (step["requests"], step["failures"]) == (10, 7)
    assert sum(errors_in_record(record).values()) == 7
    assert errors_in_series(lab, record["testid"]) == errors_in_record(record)
    assert within(RunRecord.model_validate(record))


@pytest.mark.alone
@pytest.mark.slow
def test_15000_users_pass_on_the_top_rung(lab: Lab) -> None:
    top = target(TOMCAT_MAX_THREADS=2000, TOMCAT_MAX_CONNECTIONS=50_000, TOMCAT_ACCEPT_COUNT=5000)
    result = lab("run", "tomcat-spike", "--set", "users=15000", *FASTER, *top, timeout=600)
    # On a busy machine the driver may be short of CPU for so many users: then it decides nothing.
    assert result.returncode in {0, 3}, result.stdout + result.stderr
    record = lab.records()[-1]
    assert record["steps"][0]["failures"] == 0
    assert record["connections"]["established_peak"] == 15_000
    limit = record["connections"]["accept_queue_limit"]
    somaxconn = record["host"]["limits"]["somaxconn"]
    assert limit == min(5000, somaxconn)
    warned = f"accept-count 5000 is effectively {somaxconn}" in result.stderr
    assert warned is (somaxconn < 5000)
    assert record["generator"]["memory_bytes"] / 15_000 <= 1.05 * USER_BYTES
