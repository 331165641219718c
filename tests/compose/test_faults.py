"""What goes wrong in containers while load is on, or before: what the run says of it is true, no
finished run is lost, and the stack comes back. One stack for all, small disks under its stores."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.compose.faults import DISKS, Rig, make_rig
from tests.compose.images.stand_ins import Images
from tests.faults import error_line, meanwhile, phase, plan, said
from tests.reliability import saw, seconds_until
from tests.stack.conftest import in_state

RATE = 50
ITSELF, UP, WITH_ROOM = "by itself", "by `./lab up`", "with room again"


@pytest.fixture(scope="module")
def rig(images: Images, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with make_rig(tmp_path_factory.mktemp("faults"), images) as instance:
        yield instance


@pytest.fixture
def short(tmp_path: Path) -> str:
    """A plan of 10 s."""
    return plan(tmp_path, phases=[phase("before", 2, RATE), phase("during", 8, RATE)])


def after_a_second(work: Callable[[], float], took: list[float]) -> None:
    time.sleep(1)
    took.append(work())


def run(rig: Rig, *arguments: str, exit_code: int = 0) -> dict[str, Any]:
    """`./lab run …`, with that exit code, or with 3 where the driver was short of CPU."""
    result = rig.stack.lab("run", *arguments)
    record = rig.stack.lab.records()[-1]
    starved = record["valid"] and any(map(short_of_cpu, record["steps"]))
    assert result.returncode in {exit_code, 3 if starved else exit_code}, result.stderr
    assert "Traceback" not in result.stderr
    return record


def short_of_cpu(step: dict[str, Any]) -> bool:
    """Whether the driver was, or was behind its own schedule: that decides nothing."""
    behind = step["started_rate"] < 0.98 * RATE and not step["failures"]
    return bool(step["generator"]["limited"]) or behind


def assert_unharmed(record: dict[str, Any]) -> None:
    """Load and answers are what they are without a fault, by the driver's own count."""
    assert record["valid"]
    for step in record["steps"]:
        assert step["failures"] == 0
        assert (step["verdict"], step["dropped"]) == ("pass", 0) or short_of_cpu(step)


def assert_withheld(record: dict[str, Any]) -> None:
    assert (record["valid"], record["verdict"]) == (False, "inconclusive")
    assert record["reasons"]


def test_two_ups_at_once_start_one_stack(rig: Rig) -> None:
    assert [each.returncode for each in rig.ups] == [0, 0], [each.stderr for each in rig.ups]
    expected = sorted(map(rig.container, rig.stack.services()))
    assert sorted(rig.stack.containers()) == expected
    assert rig.stack.lab("status").returncode == 0
    saw(
        "two `up` at once, from nothing",
        *("docker", "the stack", "up"),
        f"the second waits for the first; {len(expected)} containers, each once",
        recovered_seconds=rig.up_seconds,
        recovered_by="both healthy",
    )


def test_prometheus_killed(rig: Rig, short: str) -> None:
    took: list[float] = []
    killed = meanwhile(
        rig.stack.lab, partial(after_a_second, partial(rig.kill_and_wait, "prometheus"), took)
    )
    record = run(rig, short)
    killed.result()
    assert_unharmed(record)
    assert any("Prometheus recorded nothing" in warning for warning in record["warnings"])
    saw(
        "killed (SIGKILL) in a run",
        *("docker", "Prometheus", "run"),
        said(record),
        recovered_seconds=took[0],
        recovered_by=ITSELF,
        record=record,
    )


def test_influxdb_killed(rig: Rig, short: str) -> None:
    took: list[float] = []
    killed = meanwhile(
        rig.stack.lab, partial(after_a_second, partial(rig.kill_and_wait, "influxdb"), took)
    )
    record = run(rig, short, "--sink", "influxdb")
    killed.result()
    assert_unharmed(record)
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
        recovered_seconds=took[0],
        recovered_by=ITSELF,
        record=record,
    )


def test_grafana_killed_and_down_asked_for(rig: Rig, short: str) -> None:
    """Neither harms the run."""
    took: list[float] = []
    refused: list[subprocess.CompletedProcess[str]] = []

    def down_and_kill() -> float:
        refused.append(rig.stack.lab("down"))
        return rig.kill_and_wait("grafana") if rig.stack.images.grafana else 0

    killed = meanwhile(rig.stack.lab, partial(after_a_second, down_and_kill, took))
    record = run(rig, short)
    killed.result()
    assert_unharmed(record)
    assert record["warnings"] == []
    assert refused[0].returncode == 1
    assert record["testid"] in error_line(refused[0])
    saw(
        "`./lab down` in a run",
        *("docker", "the stack", "run"),
        f"refused: {error_line(refused[0])}",
        record=record,
    )
    if rig.stack.images.grafana:
        saw(
            "killed (SIGKILL) in a run",
            *("docker", "Grafana", "run"),
            f"{record['steps'][1]['requests']} requests, none failed",
            recovered_seconds=took[0],
            recovered_by=ITSELF,
            record=record,
        )


@pytest.mark.parametrize("how", ["killed (SIGKILL)", "restarted"])
def test_the_target_gone_in_a_run(rig: Rig, short: str, how: str) -> None:
    took: list[float] = []

    def restart() -> float:
        begun = time.monotonic()
        rig.stack.compose("restart", "--no-deps", "target")
        rig.recovery("target")
        return time.monotonic() - begun

    work = restart if how == "restarted" else partial(rig.kill_and_wait, "target")
    gone = meanwhile(rig.stack.lab, partial(after_a_second, work, took))
    record = run(rig, short, exit_code=1)
    gone.result()
    assert_withheld(record)
    before, during = record["steps"]
    assert before["failures"] == 0
    assert during["failures"] > 0
    saw(
        f"{how} in a run",
        *("docker", "the target", "run"),
        f"{said(record)}; {during['failures']} of {during['requests']} requests failed",
        recovered_seconds=took[0],
        recovered_by=ITSELF,
        record=record,
    )


def test_the_driver_killed(rig: Rig, short: str) -> None:
    def kill() -> float:
        rig.kill(rig.driver())
        return 0

    killed = meanwhile(rig.stack.lab, partial(after_a_second, kill, []))
    result = rig.stack.lab("run", short)
    killed.result()
    record = rig.stack.lab.records()[-1]
    assert result.returncode == 1
    assert_withheld(record)
    assert "killed" in error_line(result)
    assert sorted(in_state(rig.stack.lab, record["testid"])) == ["aborted", "closed"]
    assert not rig.leftover_drivers()
    saw(
        "killed (SIGKILL) in a run",
        *("docker", "the driver", "run"),
        f"{said(record)}; its phase is marked aborted and no container is left",
        record=record,
    )


@pytest.mark.parametrize("service", ["prometheus", "influxdb", "target"])
def test_down_at_the_start(rig: Rig, short: str, service: str) -> None:
    """What a run needs, and what the stack had: the run is refused before any load."""
    known = len(rig.stack.lab.records())
    rig.stack.compose("stop", service)
    result = rig.stack.lab("run", short)
    assert result.returncode == 1
    assert f"not running: {service}" in error_line(result)
    assert len(rig.stack.lab.records()) == known
    seconds = rig.up()
    assert rig.answers(service)
    saw(
        "down at the start of a run",
        *("docker", rig.title(service), "run"),
        f"refused: {error_line(result)}",
        recovered_seconds=seconds,
        recovered_by=UP,
    )


def test_grafana_and_the_driver_down_at_the_start(rig: Rig, short: str) -> None:
    """Grafana is no part of a run. A driver that does not start is a run that failed."""
    if rig.stack.images.grafana:
        rig.stack.compose("stop", "grafana")
    nowhere = {"K6_IMAGE": "127.0.0.1:1/k6:0"}
    result = rig.stack.lab.with_settings(**nowhere)("run", short)
    record = rig.stack.lab.records()[-1]
    assert result.returncode == 1
    assert_withheld(record)
    saw(
        "down at the start of a run",
        *("docker", "the driver", "run"),
        error_line(result),
        record=record,
    )
    record = run(rig, short)
    assert_unharmed(record)
    seconds = rig.up()
    if rig.stack.images.grafana:
        assert rig.answers("grafana")
        saw(
            "down at the start of a run",
            *("docker", "Grafana", "run"),
            f"{record['steps'][1]['requests']} requests, none failed",
            recovered_seconds=seconds,
            recovered_by=UP,
            record=record,
        )


def test_disks_full(rig: Rig, short: str) -> None:
    """Under all stores at once: each says what it lacks, and takes writes again when there is
    room."""
    took: dict[str, float] = {}
    stores = [name for name in DISKS if rig.title(name) != "Grafana" or rig.stack.images.grafana]

    def fill() -> float:
        rig.fill(*stores)
        return 0

    filled = meanwhile(rig.stack.lab, partial(after_a_second, fill, []))
    record = run(rig, short, "--sink", "influxdb")
    filled.result()
    begun = time.monotonic()
    rig.free(*stores)
    # One whose disk was full takes no new series before it is started again, and what it then
    # writes behind a log that it cut short is gone with the next start (1.8.10): so twice.
    for _ in range(2):
        rig.stack.compose("restart", "influxdb")
        seconds_until(partial(rig.answers, "influxdb"), 60, "InfluxDB answers")
    for service in stores:
        rig.recovery(service)
        took[service] = time.monotonic() - begun
    assert_unharmed(record)
    assert rig.stack.lab("runs").returncode == 0
    assert set(in_state(rig.stack.lab, record["testid"])) == {"closed"}
    for service in stores:
        words = [text for text in record["warnings"] if rig.title(service) in text]
        assert words or service == "grafana"
        saw(
            "disk full in a run",
            *("docker", rig.title(service), "run"),
            "; ".join(words) or "the run goes on",
            recovered_seconds=took[service],
            recovered_by=WITH_ROOM + (" and two restarts" if service == "influxdb" else ""),
            record=record,
        )


def first_answers_after(rig: Rig, record: dict[str, Any], moment: float) -> float:
    """Seconds from a moment to the first second with half of the rate answered."""
    series = json.loads(rig.file_of(record, "series.json").read_text())
    begun = datetime.fromisoformat(series["begun"]).timestamp()
    good = enumerate(series["points"]["good_rate"])
    return next(
        begun + second - moment
        for second, rate in good
        if begun + second > moment and (rate or 0) > RATE / 2
    )


def test_the_network_cut_for_10_s(rig: Rig, tmp_path: Path) -> None:
    def cut() -> float:
        with rig.cut_off(rig.driver()):
            time.sleep(10)
        return time.time()

    phases = [phase("before", 2, RATE), phase("during", 12, RATE), phase("after", 12, RATE)]
    took: list[float] = []
    done = meanwhile(rig.stack.lab, partial(after_a_second, cut, took))
    record = run(rig, plan(tmp_path, phases=phases), exit_code=99)
    done.result()
    before, during, after = record["steps"]
    assert (record["valid"], before["failures"]) == (True, 0)
    assert during["verdict"] == "fail" or short_of_cpu(during)
    errors = {name: count for name, count in during["errors"].items() if name != "bodies" and count}
    # No answer at all: nobody said no.
    assert set(errors) <= {"request_timeout", "dial_timeout"}
    assert during["failures"] + during["dropped"] > 5 * RATE
    saw(
        "cut off from the driver for 10 s",
        *("docker", "the target", "run"),
        f"{during['failures']} of {during['requests']} requests failed "
        f"({', '.join(f'{count} {name}' for name, count in errors.items())}), "
        f"{during['dropped']} dropped; in the phase after it {after['failures']} failed",
        recovered_seconds=first_answers_after(rig, record, took[0]),
        recovered_by=ITSELF,
        record=record,
    )


def test_compose_down_in_a_run(rig: Rig, short: str) -> None:
    """`docker compose down` by hand asks nobody: everything goes but the driver."""

    def down() -> float:
        rig.stack.compose("down", exit_code=None)
        return 0

    gone = meanwhile(rig.stack.lab, partial(after_a_second, down, []))
    result = rig.stack.lab("run", short)
    gone.result()
    record = rig.stack.lab.records()[-1]
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert_withheld(record)
    seconds = rig.up()
    assert rig.stack.lab("runs").returncode == 0
    assert set(in_state(rig.stack.lab, record["testid"])) <= {"closed", "aborted"}
    saw(
        "`docker compose down` in a run",
        *("docker", "the stack", "run"),
        said(record),
        recovered_seconds=seconds,
        recovered_by=UP,
        record=record,
    )


def test_power_cut(rig: Rig, short: str) -> None:
    """Every container and the lab die at once. What was finished is there; the rest says so."""
    finished = run(rig, short)
    lab = rig.stack.lab
    going = lab.start("run", short)

    def cut() -> float:
        rig.kill(*rig.stack.containers("--filter", "status=running"))
        os.kill(going.pid, signal.SIGKILL)
        return 0

    meanwhile(lab, partial(after_a_second, cut, []), known=len(lab.records())).result()
    going.communicate()
    # The stack is down, or half of it is up already: what belongs in InfluxDB has to wait.
    assert lab("runs").returncode == 0
    seconds = rig.up()
    assert lab("runs").returncode == 0
    kept = {record["testid"]: record for record in lab.records()}
    assert kept[finished["testid"]] == finished
    record = lab.records()[-1]
    assert_withheld(record)
    assert "aborted" in in_state(lab, record["testid"])
    history = {row["run"]: row["state"] for row in lab.influxdb.query("SELECT * FROM runs")}
    assert history[finished["testid"]] == "valid"
    assert history[record["testid"]] == "aborted"
    total = f'sum(loadtest:requests:total{{testid="{finished["testid"]}"}})'
    counted = lab.prometheus.value(f"max_over_time({total}[10m:1s])")
    assert counted == sum(step["requests"] for step in finished["steps"])
    assert not rig.leftover_drivers()
    saw(
        "power cut in a run: every container and the lab killed at once",
        *("docker", "the stack", "run"),
        f"{said(record)}; the run before it is whole in its record and in both stores",
        recovered_seconds=seconds,
        recovered_by=UP,
        record=record,
    )
