"""The ports that tests with stacks of their own are given."""

import pytest

from tests.support.ports import free_ports


def test_a_port_is_not_given_again_while_there_are_others() -> None:
    """What a stack starts on demand leaves its port free until then."""
    first, second = free_ports(100), free_ports(100)
    assert not {*first} & {*second}


def test_ports_that_were_given_longest_ago_are_given_again_first() -> None:
    given = [port for _ in range(5) for port in free_ports(90)]
    assert {*free_ports(300)} >= {*given[:90]}


def test_another_worker_is_given_others(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for worker in ("gw0", "gw1"):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
        found.append({*free_ports(100)})
    assert not found[0] & found[1]
