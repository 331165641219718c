"""What part of the mean response time is outside the server: of the same requests on both sides."""

import time
import urllib.error
import urllib.request
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from spikelab.results.run import Step
from tests.support.faults import meanwhile, phase, plan
from tests.support.lab import Lab, target_settings

_SERVICE_SECONDS = 0.05
_SERVICE = {"path": "/hello?ms=50", "timeout": "3s"}


def ask(url: str, seconds: float) -> int:
    """Somebody else asks for this again and again; how often."""
    until, asked = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        with suppress(urllib.error.HTTPError):
            urllib.request.urlopen(url).read()
        asked += 1
    return asked


def while_asked(lab: Lab, tmp_path: Path, path: str, rate: int) -> tuple[Step, int]:
    """The step of a run while somebody asks the target for this as well, and how often. The run is
    invalid for that, but has its figures."""
    asked = meanwhile(lab, partial(ask, lab.url("TARGET_PORT") + path, 6), "step")
    file = plan(tmp_path, request=_SERVICE, phases=[phase("step", 10, rate=rate)])
    record = lab.run(file, exit_code=1)
    return Step.model_validate(record["steps"][0]), asked.result()


def test_answers_that_are_not_good_do_not_count_at_the_server(lab: Lab, tmp_path: Path) -> None:
    """400s on the same path, which take no time: with them its mean would be a fifth."""
    step, asked = while_asked(lab, tmp_path, "/hello?ms=long", 20)
    assert asked > step.good
    assert step.server_good == pytest.approx(step.good, rel=0.02)
    assert step.server_mean_seconds is not None
    assert step.server_mean_seconds >= _SERVICE_SECONDS
    assert step.outside_server_share is not None
    assert 0 < step.outside_server_share < 0.4


def test_no_share_is_given_where_the_server_answered_other_requests_too(
    lab: Lab, tmp_path: Path
) -> None:
    step, asked = while_asked(lab, tmp_path, "/hello?ms=500", 20)
    assert step.server_good == pytest.approx(step.good + asked, abs=2)
    assert step.outside_server_share is None


def test_requests_that_were_turned_away_change_nothing(lab: Lab) -> None:
    """10 workers and 10 places to wait: answers after 1 and 2 s, of which the server sees 1."""
    few = target_settings(TOMCAT_MAX_THREADS=10, TOMCAT_MAX_QUEUE_CAPACITY=10)
    load = ("--set", "users=100", "--set", "request.path=/hello?ms=1000")
    record = lab.run_unjudged("tomcat-spike", *load, *few)
    step = Step.model_validate(record["steps"][0])
    assert (step.good, step.failures, step.server_good) == (20, 80, 20)
    assert step.outside_server_share == pytest.approx(1 / 3, abs=0.1)


def test_no_share_is_given_where_the_server_answered_users_who_had_given_up(lab: Lab) -> None:
    few = target_settings(TOMCAT_MAX_THREADS=10)
    load = ("users=20", "request.path=/hello?ms=1000", "request.timeout=1500ms")
    sets = (f"--set={value}" for value in load)
    record = lab.run_unjudged("tomcat-spike", *sets, *few)
    step = Step.model_validate(record["steps"][0])
    assert (step.good, step.server_good) == (10, 20)
    assert step.outside_server_share is None


def test_a_warm_up_before_a_step_is_not_in_its_share(lab: Lab, tmp_path: Path) -> None:
    """It overloads the workers: its answers come in the step, whose own the timer cannot tell."""
    warm_up = {**phase("warm-up", 4, rate=180), "judged": False}
    later = {**phase("later", 6, rate=50), "start": "14s"}
    phases = [warm_up, phase("step", 5, rate=50), later]
    few = target_settings(TOMCAT_MAX_THREADS=6)
    file = plan(tmp_path, request=_SERVICE, phases=phases, slo=[])
    record = lab.run_unjudged(file, *few)
    step, later_step = map(Step.model_validate, record["steps"])
    assert step.server_good is None
    assert step.outside_server_share is None
    assert later_step.server_good == later_step.good
    assert later_step.outside_server_share is not None
    assert later_step.server_rate == pytest.approx(50, rel=0.05)
