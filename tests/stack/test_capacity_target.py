"""Capacity searches against the real target, and what it does with an overload."""

import pytest

from tests.stack.searches import search, within_5_percent
from tests.support.lab import Lab

# Beside other tests the driver is late, which decides nothing.
pytestmark = pytest.mark.alone


@pytest.mark.slow
@pytest.mark.parametrize(("threads", "first", "factor"), [(20, 350, 2.0), (40, 700, 1.25)])
def test_capacity_of_the_target_doubles_with_its_threads(
    lab: Lab, threads: int, first: float, factor: float
) -> None:
    course = {"first": first, "factor": factor, "overload": "3s", "recovery": "8s"}
    answer = search(
        lab,
        *("capacity", "--preset", "brief"),
        *(f"--set={name}={value}" for name, value in course.items()),
        *("--target-set", f"TOMCAT_MAX_THREADS={threads}"),
    )
    within_5_percent(answer, threads / 0.05)
    assert answer["overload"]["outcome"] == "queues"
    assert all(step["resources"]["worker_threads_share"] > 0.4 for step in answer["steps"])


@pytest.mark.slow
def test_a_bounded_queue_sheds_an_overload(lab: Lab) -> None:
    # The only rate that is allowed: the overload follows at once.
    only = [f"--set={name}=320" for name in ("first", "lowest", "highest")]
    answer = search(
        lab,
        *("capacity", "--preset", "brief", *only, "--set", "recovery=12s", "--set", "warm_up=4s"),
        *("--target-set", "TOMCAT_MAX_QUEUE_CAPACITY=20"),
        exit_code=3,
    )
    assert (answer["outcome"], answer["highest_pass"]) == ("at least", 320)
    overload = answer["overload"]
    assert overload["outcome"] == "sheds"
    assert overload["goodput"] > 0.8 * 400
    assert overload["recovery_seconds"] <= 5
