"""Runs and changes of the stack: one at a time, whoever asks for them."""

import threading
import time
from pathlib import Path

import pytest

from spikelab.errors import LabError
from spikelab.stack import locks


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(locks, "_LOCK", tmp_path / "run.lock")


def test_a_second_run_is_refused_with_the_name_of_the_first() -> None:
    with locks.only_run() as name_it:
        name_it("20261121T010203Z-mine-0a1b")
        with (
            pytest.raises(LabError, match=r"another run is going: 20261121T010203Z-mine-0a1b \("),
            locks.only_run(),
        ):
            pytest.fail("two runs at once")
    with locks.only_run():
        pass


def test_who_looks_whether_a_run_is_going_keeps_runs_from_starting() -> None:
    with locks.only_run(), locks.no_run() as idle:
        assert not idle
    with locks.no_run() as idle:
        assert idle
        with pytest.raises(LabError, match="another run is going"), locks.only_run():
            pytest.fail("a run started beside what must be alone")


def test_commands_that_change_the_stack_do_so_one_at_a_time(tmp_path: Path) -> None:
    lock, inside, most = tmp_path / "stack.lock", [], []

    def another() -> None:
        with locks.alone(lock, "another command"):
            inside.append(True)
            most.append(len(inside))
            time.sleep(0.2)
            inside.pop()

    waiting = [threading.Thread(target=another) for _ in range(2)]
    with locks.alone(lock, "another command"):
        inside.append(True)
        for each in waiting:
            each.start()
        # Long enough for both to ask.
        time.sleep(0.2)
        inside.pop()
    for each in waiting:
        each.join(5)
    assert most == [1, 1]
