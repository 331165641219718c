"""What is known of a server of random service times, by formula and by its own workers."""

import random

import pytest

from tests.support.servers.known_capacity import Workers, exponential
from tests.support.servers.known_plan import RandomServer


@pytest.mark.parametrize("share", [0.97, 1.0, 1.02])
def test_erlang_s_formula_is_what_workers_do_with_poisson_arrivals(share: float) -> None:
    """Of the response time: the wait for a worker and the service."""
    server = RandomServer(workers=16, service_seconds=0.032, limit_seconds=0.144)
    rate = share * server.capacity()
    workers, arrivals = Workers(16, exponential(0.032, seed=1)), random.Random(2)
    now, slow, asked = 0.0, 0, 400_000
    for _ in range(asked):
        now += arrivals.expovariate(rate)
        slow += workers.take(now) - now > server.limit_seconds
    assert slow / asked == pytest.approx(server.slow_share(rate), rel=0.15)


def test_at_its_capacity_five_in_a_hundred_are_slow() -> None:
    server = RandomServer(workers=16, service_seconds=0.032, limit_seconds=0.144)
    assert server.slow_share(server.capacity()) == pytest.approx(0.05)
    assert server.capacity() == pytest.approx(469.5, abs=0.1)
