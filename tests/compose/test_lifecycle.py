"""The life of a stack of containers: from nothing to healthy, stopped, started, taken down."""

from datetime import UTC, datetime

import pytest

from tests.compose.conftest import Stack
from tests.support.lab import wait_until

_MARK = "lifecycle,testid=kept value=1"
_SCRAPED = 'up{component="prometheus"}'


@pytest.fixture(scope="module")
def marked(stack: Stack) -> tuple[Stack, datetime]:
    """The session's stack with something in both stores; when that was."""
    stack.influxdb.write(_MARK)
    wait_until(lambda: stack.prometheus.value(_SCRAPED) == 1, 30, "a sample in Prometheus")
    return stack, datetime.now(UTC)


def kept(stack: Stack, since: datetime) -> bool:
    """Whether both stores still have what they had."""
    rows = stack.influxdb.query("SELECT value FROM lifecycle")
    return len(rows) == 1 and stack.prometheus.value(_SCRAPED, since) == 1


def healthy(stack: Stack) -> set[str]:
    names = stack.containers("--filter", "health=healthy")
    return {name.removeprefix(f"{stack.project}-").rpartition("-")[0] for name in names}


def test_up_waits_until_all_are_healthy(stack: Stack) -> None:
    wanted = {"target", "sockets-exporter", "prometheus", "influxdb"}
    if stack.images.grafana:
        wanted.add("grafana")
    assert wanted <= healthy(stack)


def test_up_again_starts_nothing_anew(stack: Stack) -> None:
    before = stack.containers("--no-trunc", "--filter", "status=running")
    stack.up()
    assert stack.containers("--no-trunc", "--filter", "status=running") == before


def test_stop_and_start_keep_what_the_stores_have(marked: tuple[Stack, datetime]) -> None:
    stack, since = marked
    stack.compose("stop")
    assert stack.containers("--filter", "status=running") == []
    stack.compose("start", *stack.services())
    stack.up()
    assert kept(stack, since)


def test_down_leaves_the_named_volumes_and_nothing_else(marked: tuple[Stack, datetime]) -> None:
    stack, since = marked
    # Those of what is started on demand, too: other tests use this stack.
    named = stack.compose("--profile", "*", "config", "--volumes").stdout.split()
    assert stack.mounted() <= {f"{stack.project}_{name}" for name in named}
    stack.compose("--profile", "*", "down")
    assert stack.containers() + stack.networks() == []
    left = {name.removeprefix(f"{stack.project}_") for name in stack.volumes()}
    assert {"prometheus-data", "influxdb-data"} <= left <= set(named)
    stack.up()
    assert kept(stack, since)
