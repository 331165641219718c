"""What goes wrong at the target, at the driver and between them: a verdict is right or withheld."""

import json
import time
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from tests.compose.faults import ITSELF, RATE, Rig, docker, make_rig
from tests.compose.images.stand_ins import Images
from tests.reliability import saw, seconds_until
from tests.support.faults import assert_withheld, error_line, said, short_of_cpu
from tests.support.lab import in_state


@pytest.fixture(scope="module")
def rig(images: Images, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with make_rig(tmp_path_factory.mktemp("target"), images, grafana=False) as instance:
        instance.up()
        yield instance


@pytest.mark.parametrize("how", ["killed (SIGKILL)", "restarted"])
def test_the_target_gone_in_a_run(rig: Rig, how: str) -> None:
    def restart() -> float:
        begun = time.monotonic()
        rig.stack.compose("restart", "--no-deps", "target")
        rig.recovery("target")
        return time.monotonic() - begun

    gone = restart if how == "restarted" else partial(rig.kill_and_wait, "target")
    run = rig.run_while(gone, rig.plan(), exit_code=1)
    assert_withheld(run.record)
    before, during = run.record["steps"]
    assert before["failures"] == 0
    assert during["failures"] > 0
    saw(
        f"{how} in a run",
        *("docker", "the target", "run"),
        f"{said(run.record)}; {during['failures']} of {during['requests']} requests failed",
        recovered_seconds=run.fault,
        recovered_by=ITSELF,
        record=run.record,
    )


def test_the_targets_network_killed(rig: Rig) -> None:
    """It goes on in a network that is gone, and its health check says so."""
    rig.kill(rig.container("target-network"))
    streak = ("inspect", "--format", "{{.State.Health.FailingStreak}}", rig.container("target"))

    def noticed() -> bool:
        return not rig.answers("target") and int(docker(*streak)) > 0

    seconds = seconds_until(noticed, 30, "its health check fails")
    # The engine starts the network again, and restarts nothing in it before it has.
    state = ("inspect", "--format", "{{.State.Status}}", rig.container("target-network"))
    seconds_until(lambda: docker(*state).strip() == "running", 30, "its network is started again")
    begun = time.monotonic()
    rig.stack.compose("restart", "--no-deps", "target", "sockets-exporter")
    rig.recovery("target")
    saw(
        "the container that holds its network killed (SIGKILL)",
        *("docker", "the target", "idle"),
        f"out of reach; its health check fails for the first time after {seconds:.0f} s",
        recovered_seconds=time.monotonic() - begun,
        recovered_by="by `docker compose restart target sockets-exporter`",
    )


def test_the_driver_killed(rig: Rig) -> None:
    run = rig.run_while(lambda: rig.kill(rig.driver()), rig.plan(), exit_code=1)
    assert_withheld(run.record)
    assert "killed" in error_line(run.result)
    assert sorted(in_state(rig.stack.lab, run.record["testid"])) == ["aborted", "closed"]
    assert not rig.leftover_drivers()
    saw(
        "killed (SIGKILL) in a run",
        *("docker", "the driver", "run"),
        f"{said(run.record)}; its phase is marked aborted and no container is left",
        record=run.record,
    )


def test_the_driver_down_at_the_start(rig: Rig) -> None:
    """One that does not start is a run that failed."""
    nowhere = {"K6_IMAGE": "127.0.0.1:1/k6:0"}
    result = rig.stack.lab.with_settings(**nowhere)("run", rig.plan())
    record = rig.stack.lab.records()[-1]
    assert result.returncode == 1
    assert_withheld(record)
    saw(
        "down at the start of a run",
        *("docker", "the driver", "run"),
        error_line(result),
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


def test_the_network_cut_for_10_s(rig: Rig) -> None:
    """The last one: the target keeps connections whose end it never heard of, and a run after it
    would wait for them."""

    def cut() -> float:
        with rig.cut_off(rig.driver()):
            time.sleep(10)
        return time.time()

    run = rig.run_while(cut, rig.plan(12, after_seconds=6), exit_code=99)
    record = run.record
    before, during, after = record["steps"]
    assert (record["valid"], before["failures"]) == (True, 0)
    assert during["verdict"] == "fail" or short_of_cpu(during, RATE)
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
        recovered_seconds=first_answers_after(rig, record, run.fault),
        recovered_by=ITSELF,
        record=record,
    )
