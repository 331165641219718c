"""What goes wrong at the stores and at Grafana, in a run or before it: the run says what it lacks
of them, and they come back. Small disks lie under them."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from tests.compose.faults import DISKS, ITSELF, RATE, UP, Rig, docker, make_rig
from tests.compose.images.stand_ins import Images
from tests.reliability import saw, seconds_until
from tests.support.faults import assert_unharmed, said
from tests.support.lab import in_state

WITH_ROOM = "with room again"
# Prometheus is back before the run ends, also on a busy machine: else nobody can ask it for gaps.
LONG_SECONDS = 8


@pytest.fixture(scope="module")
def rig(images: Images, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with make_rig(tmp_path_factory.mktemp("stores"), images, disks=True) as instance:
        instance.up()
        yield instance


def test_prometheus_killed(rig: Rig) -> None:
    run = rig.run_while(partial(rig.kill_and_wait, "prometheus"), rig.plan(LONG_SECONDS))
    assert_unharmed(run.record, RATE)
    assert any("Prometheus recorded nothing" in warning for warning in run.record["warnings"])
    saw(
        "killed (SIGKILL) in a run",
        *("docker", "Prometheus", "run"),
        said(run.record),
        recovered_seconds=run.fault,
        recovered_by=ITSELF,
        record=run.record,
    )


def test_influxdb_killed(rig: Rig) -> None:
    run = rig.run_while(partial(rig.kill_and_wait, "influxdb"), rig.plan(), "--sink", "influxdb")
    record = run.record
    assert_unharmed(record, RATE)
    during = record["steps"][1]
    stored = rig.stack.influxdb.query(
        f"SELECT count(\"value\") FROM http_reqs WHERE testid = '{record['testid']}' "
        "AND scenario = 'during'"
    )[0]["count"]
    # It may be back before k6 writes again.
    missing = during["raw_samples_missing"]
    assert missing == during["requests"] - stored
    assert (missing > 0) == any("InfluxDB lacks" in text for text in record["warnings"])
    assert in_state(rig.stack.lab, record["testid"]) == ["closed", "closed"]
    saw(
        "killed (SIGKILL) in a run",
        *("docker", "InfluxDB", "run"),
        f"{missing} of {during['requests']} raw samples missing, as the record counts",
        recovered_seconds=run.fault,
        recovered_by=ITSELF,
        record=record,
    )


def test_grafana_down_at_the_start(rig: Rig) -> None:
    """It is no part of a run."""
    rig.needs_grafana()
    docker("stop", rig.container("grafana"))
    run = rig.run_while(partial(rig.answers, "grafana"), rig.plan())
    record = run.record
    assert run.fault is False
    assert_unharmed(record, RATE)
    seconds = rig.up()
    assert rig.answers("grafana")
    saw(
        "down at the start of a run",
        *("docker", "Grafana", "run"),
        f"{record['steps'][1]['requests']} requests, none failed",
        recovered_seconds=seconds,
        recovered_by=UP,
        record=record,
    )


@dataclass(frozen=True)
class Full:
    """The run in which the disks were full, and the seconds in which each store was back."""

    record: dict[str, Any]
    recovered_seconds: dict[str, float]


@pytest.fixture(scope="module")
def full(rig: Rig) -> Full:
    """All stores' disks at once."""
    stores = [name for name in DISKS if name != "grafana" or rig.stack.images.grafana]
    run = rig.run_while(partial(rig.fill, *stores), rig.plan(LONG_SECONDS), "--sink", "influxdb")
    begun = time.monotonic()
    rig.free(*stores)
    # One whose disk was full takes no new series before it is started again, and what it then
    # writes behind a log that it cut short is gone with the next start (1.8.10): so twice.
    for _ in range(2):
        docker("restart", rig.container("influxdb"))
        seconds_until(partial(rig.answers, "influxdb"), 60, "InfluxDB answers")
    took: dict[str, float] = {}
    for service in stores:
        rig.recovery(service)
        took[service] = time.monotonic() - begun
    assert_unharmed(run.record, RATE)
    assert rig.stack.lab("runs").returncode == 0
    assert set(in_state(rig.stack.lab, run.record["testid"])) == {"closed"}
    return Full(run.record, took)


@pytest.mark.parametrize("service", DISKS)
def test_disk_full(rig: Rig, full: Full, service: str) -> None:
    """Each store says what it lacks, and takes writes again when there is room."""
    if service == "grafana":
        rig.needs_grafana()
    record = full.record
    words = [text for text in record["warnings"] if rig.title(service) in text]
    assert words or service == "grafana"
    saw(
        "disk full in a run",
        *("docker", rig.title(service), "run"),
        "; ".join(words) or "the run goes on",
        recovered_seconds=full.recovered_seconds[service],
        recovered_by=WITH_ROOM + (" and two restarts" if service == "influxdb" else ""),
        record=record,
    )
