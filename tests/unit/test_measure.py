"""Steps from what a driver said of its phases."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from spikelab.errors import LabError
from spikelab.measure import StepBatches, build_step, fill_batches, latency_basis, workers_seen
from spikelab.plans.model import Plan
from spikelab.results.run import LatencyParts
from spikelab.statistics.distribution import Distribution
from spikelab.stores import Prometheus
from tests.support.past_prometheus import BEGUN, needs_prometheus, past_prometheus
from tests.support.records import START, plain_record, plain_step, plain_summary


def plan(script: str = "steady", **phase: Any) -> Plan:
    given = {"name": "one", "kind": "rate", "value": 100, "duration": "10s", **phase}
    return Plan.model_validate(
        {"name": "steps", "about": "", "script": script, "phases": [given], "slo": ["p95 < 1s"]}
    )


@pytest.mark.parametrize(
    ("slow", "goodput"),
    [({}, 90.0), ({"p95 < 1s": 30}, 87.0), ({"p95 < 1s": 30, "p99 < 2s": 10}, 89.0)],
)
def test_goodput_leaves_out_what_failed_or_was_above_every_limit(
    slow: dict[str, int], goodput: float
) -> None:
    one = plan()
    step = build_step(one.phases[0], plain_summary(10.2, failures=100, slow=slow), one, None, 1)
    assert (step.goodput, step.slow, step.late_answers) == (goodput, slow, 0)


def test_what_jitter_takes_is_no_drain() -> None:
    for jitter, ended, drain in (("2s", 12.5, 0.5), ("2s", 11.0, 0.0), (None, 12.5, 2.5)):
        one = plan(jitter=jitter)
        step = build_step(one.phases[0], plain_summary(ended), one, None, 1)
        assert (step.drain_seconds, step.started_rate) == (drain, 100.0)
        assert step.achieved_rate == pytest.approx(1000 / (10 + drain), abs=0.001)
        assert step.ended == START + timedelta(seconds=ended)


def test_a_phase_has_users_for_those_that_wait_out_their_jitter() -> None:
    users = {each: plan(jitter=each).phases[0].most_users for each in (None, "0s", "2s")}
    assert users == {None: 100, "0s": 100, "2s": 300}
    assert plan(jitter="2s", most_users=50).phases[0].most_users == 50


@pytest.mark.parametrize(
    ("phase", "driver", "says"),
    [
        ({"jitter": "11s"}, "k6", "longer than the phase"),
        ({"jitter": "1s", "kind": "users"}, "k6", "belong to the kind rate"),
        ({"jitter": "1"}, "k6", "duration"),
        ({"jitter": "1s"}, "locust", "jitter is for k6"),
    ],
)
def test_jitter_that_cannot_be_is_refused(phase: dict[str, Any], driver: str, says: str) -> None:
    given = {"name": "one", "kind": "rate", "value": 100, "duration": "10s", **phase}
    with pytest.raises(ValidationError, match=says):
        Plan.model_validate(
            {
                "name": "steps",
                "about": "",
                "driver": driver,
                "script": {"k6": "steady", "locust": "hello"},
                "phases": [given],
            }
        )


def test_percentiles_come_from_the_distribution_and_count_every_request_that_was_due() -> None:
    """One dropped request of 10,000 is one rank of 10,000, not the next percentile printed."""
    times = [0.050 + i * 1e-6 for i in range(9_000)] + [0.154 + i * 1e-6 for i in range(999)]
    one = plan(value=1000)
    happened = plain_summary(requests=9_999, dropped=1, latency=Distribution.of(times))
    step = build_step(one.phases[0], happened, one, None, 1)
    assert step.latency_seconds.p50 == pytest.approx(0.055, rel=0.001)
    assert step.latency_with_failures_seconds.p50 == pytest.approx(0.055, rel=0.001)
    p99 = step.latency_seconds.p99
    assert step.latency_with_failures_seconds.p99 == pytest.approx(p99, rel=0.001)
    assert step.latency_with_failures_seconds.max is None


def test_completed_rate_is_of_answers_before_the_window_s_end() -> None:
    """One answer that is 2.9 s late has no share in it, nor takes any from the others."""
    one = plan()
    happened = plain_summary(12.9, completed=1000, completed_in_window=999)
    step = build_step(one.phases[0], happened, one, None, 1)
    assert step.completed_rate == 99.9
    assert step.achieved_rate == pytest.approx(1000 / 12.9, abs=0.001)


def test_times_of_requests_that_a_script_sent_by_itself_are_the_driver_s_own() -> None:
    good, parts = Distribution.of([0.1, 0.2]), LatencyParts(waiting=0.15)
    timed = plain_summary(latency=good, latency_parts_seconds=parts)
    assert latency_basis([timed, plain_summary()]) == "response time"
    assert latency_basis([timed, plain_summary(latency=good)]) == "request"


class Seconds(Prometheus):
    """One that has recorded every second but those `away`: 100 requests in each batch, of which
    more fail, and take longer, the later it is. `asked`: first and last second of the batches, and
    how many."""

    def __init__(self, requests: float = 100.0, away: range = range(0)) -> None:
        super().__init__("")
        self.asked: set[tuple[float, float, int]] = set()
        self.requests = requests
        self.away = away

    def values(self, expression: str, first: float, last: float, step: float) -> dict[int, float]:
        ends = [round(first + place * step, 3) for place in range(round((last - first) / step) + 1)]
        if "sockets" in expression:
            return {int(end): end for end in ends if int(end - START.timestamp()) not in self.away}
        self.asked.add((first - step, last, len(ends)))
        if "requests" in expression or not self.requests:
            return dict.fromkeys(map(int, ends), self.requests)
        return {int(end): float(place + 1) for place, end in enumerate(ends)}


@pytest.mark.parametrize(
    ("script", "phase", "asked"),
    [
        ("steady", {}, (1, 11, 10)),
        ("steady", {"kind": "users", "value": 10}, (1, 11, 10)),
        # Ten as in the simulations, whatever the length; of a short step one a second.
        ("steady", {"duration": "19s"}, (1, 20, 10)),
        ("steady", {"duration": "25s"}, (1, 26, 10)),
        ("steady", {"duration": "7s"}, (1, 8, 7)),
        ("steady", {"duration": "4s"}, None),
        # Load that rises by itself shows neither neighbours nor a target that becomes slower.
        ("steady", {"kind": "users", "value": 10, "ramp_up": "4s"}, (5, 11, 6)),
        ("steady", {"kind": "users", "value": 10, "ramp_up": "6s"}, None),
        ("ramp", {}, None),
        ("spike", {"kind": "users", "value": 10}, None),
    ],
)
def test_batches_are_of_the_time_in_which_the_load_is_even(
    script: str, phase: dict[str, Any], asked: tuple[int, int, int] | None
) -> None:
    one = plan(script, **phase)
    step, store = plain_step(), Seconds()
    fill_batches(step, one.phases[0], one, plain_record(), store)
    begun = START.timestamp()
    found = {(round(first - begun, 3), last - begun, count) for first, last, count in store.asked}
    assert found == ({asked} if asked else set())
    assert (step.rise is not None) == bool(asked)
    assert bool(step.dependence) == bool(asked)


@pytest.mark.parametrize("store", [Seconds(away=range(3, 7)), Seconds(requests=0.0)])
def test_a_step_that_prometheus_did_not_see_whole_has_no_batches(store: Seconds) -> None:
    """What it counts at its return came seconds before: whoever calls says what is missing."""
    one, step = plan(), plain_step()
    with pytest.raises(LabError, match="not recorded all of steady"):
        fill_batches(step, one.phases[0], one, plain_record(), store)
    assert (step.dependence, step.rise) == ({}, None)


@needs_prometheus
def test_each_second_is_in_one_batch(tmp_path: Path) -> None:
    series = 'loadtest:requests:rate{testid="t", driver="k6", phase="one", name="/"}'
    with past_prometheus(tmp_path, range(60), {series: lambda second: 2.0**second}) as store:
        for seconds in (5, 10, 15, 19, 25):
            begin = int(BEGUN.timestamp()) + 3
            found = StepBatches(store, "t", "one", begin, seconds).requests()
            assert len(found) == min(10, seconds)
            assert sum(found) == sum(2.0**second for second in range(4, 4 + seconds))


def test_late_answers_do_not_look_like_more_workers() -> None:
    """20 workers: the first wave's answers come 1 s late, the second's in time."""
    times = [2.0 + 0.05 * n for n in range(20)] + [4.0 + 0.001 * n for n in range(20)]
    assert workers_seen(times, 2, 0.1, busy=6) == 20


def test_workers_show_after_a_long_start_while_all_are_busy() -> None:
    """10 workers, an answer each 0.5 s; users begin over 1 s, and all workers are busy for 5 s."""
    times = [0.05 * n for n in range(10, 100)]
    assert workers_seen(times, 0.5, 1.0, busy=5) == 10
    assert workers_seen(times, 0.5, 1.0, busy=2) is None
