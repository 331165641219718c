"""What goes wrong with the whole stack: two `up` at once, a part that is down, `down` in a run, a
power cut. No finished run is lost, and the stack comes back."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from tests.compose.faults import ITSELF, RATE, UP, Faulty, Rig, docker, make_rig
from tests.compose.images.stand_ins import Images
from tests.reliability import saw
from tests.support.faults import assert_unharmed, assert_withheld, error_line, meanwhile, said
from tests.support.lab import in_state

Result = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Begun:
    """A stack that two `./lab up` at once have started, and what they said."""

    rig: Rig
    ups: list[Result]
    seconds: float


@pytest.fixture(scope="module")
def begun(images: Images, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Begun]:
    with make_rig(tmp_path_factory.mktemp("stack"), images) as rig:
        started = time.monotonic()
        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(rig.stack.lab, "up", *rig.without) for _ in range(2)]
        yield Begun(rig, [each.result() for each in both], time.monotonic() - started)


@pytest.fixture(scope="module")
def rig(begun: Begun) -> Rig:
    return begun.rig


def test_two_ups_at_once_start_one_stack(rig: Rig, begun: Begun) -> None:
    assert [each.returncode for each in begun.ups] == [0, 0], [each.stderr for each in begun.ups]
    expected = sorted(map(rig.container, rig.stack.services()))
    assert sorted(rig.stack.containers()) == expected
    assert rig.stack.lab("status").returncode == 0
    saw(
        "two `up` at once, from nothing",
        *("docker", "the stack", "up"),
        f"the second waits for the first; {len(expected)} containers, each once",
        recovered_seconds=begun.seconds,
        recovered_by="both healthy",
    )


def refusal_without(rig: Rig, service: str) -> str:
    """What `./lab run` says while that one alone is down."""
    known = len(rig.stack.lab.records())
    docker("stop", rig.container(service))
    result = rig.stack.lab("run", rig.plan())
    docker("start", rig.container(service))
    assert result.returncode == 1
    assert f"not running: {service}:" in error_line(result)
    assert len(rig.stack.lab.records()) == known
    return error_line(result)


def test_down_at_the_start(rig: Rig) -> None:
    """What a run needs, and what the stack had: the run is refused before any load."""
    services = ("prometheus", "influxdb", "target")
    refusals = {service: refusal_without(rig, service) for service in services}
    docker("stop", *map(rig.container, services))
    seconds = rig.up()
    for service, refusal in refusals.items():
        assert rig.answers(service)
        saw(
            "down at the start of a run",
            *("docker", rig.title(service), "run"),
            f"refused: {refusal}",
            recovered_seconds=seconds,
            recovered_by=UP,
        )


@pytest.fixture(scope="module")
def unharmed(rig: Rig) -> Faulty[tuple[Result, float]]:
    """A run in which the lab is asked for `down` and Grafana is killed."""

    def down_and_kill() -> tuple[Result, float]:
        refused = rig.stack.lab("down")
        return refused, rig.kill_and_wait("grafana") if rig.stack.images.grafana else 0

    run = rig.run_while(down_and_kill, rig.plan())
    assert_unharmed(run.record, RATE)
    assert run.record["warnings"] == []
    return run


def test_lab_down_in_a_run(unharmed: Faulty[tuple[Result, float]]) -> None:
    refused, _ = unharmed.fault
    assert refused.returncode == 1
    assert unharmed.record["testid"] in error_line(refused)
    saw(
        "`./lab down` in a run",
        *("docker", "the stack", "run"),
        f"refused: {error_line(refused)}",
        record=unharmed.record,
    )


def test_grafana_killed(rig: Rig, unharmed: Faulty[tuple[Result, float]]) -> None:
    rig.needs_grafana()
    record = unharmed.record
    saw(
        "killed (SIGKILL) in a run",
        *("docker", "Grafana", "run"),
        f"{record['steps'][1]['requests']} requests, none failed",
        recovered_seconds=unharmed.fault[1],
        recovered_by=ITSELF,
        record=record,
    )


def test_power_cut(rig: Rig, unharmed: Faulty[tuple[Result, float]]) -> None:
    """Every container and the lab die at once. What was finished is there; the rest says so."""
    finished = unharmed.record
    lab = rig.stack.lab
    known = len(lab.records())
    going = lab.start("run", rig.plan())

    def cut() -> None:
        time.sleep(1)
        rig.kill(*rig.stack.containers("--filter", "status=running"))
        os.kill(going.pid, signal.SIGKILL)

    meanwhile(lab, cut, known=known).result()
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


def test_compose_down_in_a_run(rig: Rig) -> None:
    """`docker compose down` by hand asks nobody: everything goes but the driver."""
    run = rig.run_while(lambda: rig.stack.compose("down", exit_code=None), rig.plan(4), exit_code=1)
    assert_withheld(run.record)
    seconds = rig.up()
    assert rig.stack.lab("runs").returncode == 0
    assert set(in_state(rig.stack.lab, run.record["testid"])) <= {"closed", "aborted"}
    saw(
        "`docker compose down` in a run",
        *("docker", "the stack", "run"),
        said(run.record),
        recovered_seconds=seconds,
        recovered_by=UP,
        record=run.record,
    )
