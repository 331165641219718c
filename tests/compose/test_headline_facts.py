"""The fact that docs/connections.md leads with, in containers; on the host it is one of
tests/stack/test_headline_facts.py.
"""

import time
from functools import partial

import pytest

from spikelab.prediction.check import within
from spikelab.results.run import RunRecord
from tests.compose.conftest import Stack
from tests.support.lab import Lab, errors_in_record, requests_counted, wait_until


@pytest.mark.alone
@pytest.mark.slow
def test_10000_users_on_the_defaults_hold_8293_connections(stack: Stack, docker: Lab) -> None:
    """Counted by the kernel inside the target's own namespace, with no published port between."""
    begun = time.monotonic()
    # Half a minute shorter than the plan: a user who cannot connect gives up after 30 s.
    patience = ("--set", "request.timeout=35s")
    record = docker.run("tomcat-spike", "--set", "users=10000", *patience, exit_code=99)
    window = f"[{time.monotonic() - begun + 10:.0f}s]"

    def most(series: str) -> float | None:
        return stack.prometheus.value(f'max_over_time({series}{{port="8080"}}{window})')

    assert most("sockets_established") == 8293
    assert (most("sockets_accept_queue_depth"), most("sockets_accept_queue_limit")) == (101, 100)
    # The last ones gave up a moment ago, and rules are evaluated every second.
    counted = partial(requests_counted, stack.prometheus, record["testid"])
    wait_until(lambda: counted() == 10_000, 30, "all are counted")
    connections = record["connections"]
    assert (connections["predicted"], connections["established_peak"]) == (8293, 8293)
    assert (connections["accept_queue_peak"], connections["accept_queue_limit"]) == (101, 100)
    assert connections["listen_overflows"] > 0
    assert within(RunRecord.model_validate(record))
    step, errors = record["steps"][0], errors_in_record(record)
    assert step["requests"] == 10_000
    assert sum(errors.values()) == step["failures"] > 0
    # Users whose SYN was dropped, and users who waited too long for a worker.
    assert errors["dial_timeout"] > 0
    assert errors["request_timeout"] > 0
