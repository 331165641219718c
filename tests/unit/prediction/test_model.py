"""The model of a spike beside what was measured: the tables of docs/connections.md."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spikelab import paths
from spikelab.errors import UsageError
from spikelab.plans.load import load_plan
from spikelab.prediction.check import STRAY_SHARE, predict, predicted_rate, service_seconds
from spikelab.prediction.model import Server, Spike, simulate


def server(
    threads: int | None = 200,
    connections: int = 8192,
    accept: int = 100,
    idle: float = 20,
    queue: int | None = None,
) -> Server:
    """Defaults as in target.yml; `accept` already capped by a somaxconn of 4096."""
    return Server(threads, connections, min(accept, 4096), idle, queue)


def spike(users: int, keep_alive: bool = True) -> Spike:
    return Spike(users, service_seconds=5, timeout_seconds=60, keep_alive=keep_alive)


@dataclass(frozen=True)
class Measured:
    """A row of a measured table: one run, times since its start. None: the table does not say."""

    users: int
    server: Server
    established: int | None
    good: int
    last: float | None
    failures: dict[str, int]
    keep_alive: bool = True


# docs/connections.md, section 7: the spike ladder, 2 vCPU, Linux 6.18.44, k6 2.2.0, one run a row.
LADDER = {
    "300": Measured(300, server(), 300, 300, 10.4, {}),
    "1000": Measured(1000, server(), 1000, 1000, 25.5, {}),
    "2000": Measured(2000, server(), 2000, 2000, 51.3, {}),
    "3000": Measured(3000, server(), 3000, 2267, 61.8, {"request_timeout": 733}),
    "3000 threads 500": Measured(3000, server(500), 3000, 3000, 32.4, {}),
    "6000 threads 500": Measured(6000, server(500), 6000, 6000, 60.5, {}),
    "6000 threads 1000": Measured(6000, server(1000), 6000, 6000, 32.5, {}),
    "10000": Measured(
        10_000,
        server(),
        8293,
        2400,
        60.8,
        {"request_timeout": 6028, "dial_timeout": 1569, "reset": 3},
    ),
    "10000 threads 1000": Measured(10_000, server(1000), 8293, 8293, 47.3, {"dial_timeout": 1707}),
    "10000 threads 1000 idle 30": Measured(
        10_000,
        server(1000, idle=30),
        8293,
        8293,
        45.7,
        {"dial_timeout": 1603, "request_timeout": 104},
    ),
    "10000 threads 1000 connections 20000": Measured(
        10_000, server(1000, 20_000), 10_000, 10_000, 52.2, {}
    ),
    "10000 threads 1000 accept 2000": Measured(
        10_000, server(1000, accept=2000), 10_000, 10_000, 55.2, {}
    ),
    "10000 threads 1000 accept 2000 idle 60": Measured(
        10_000, server(1000, accept=2000, idle=60), 10_000, 8192, 46.4, {"request_timeout": 1808}
    ),
    "15000 threads 2000 connections 50000 accept 5000": Measured(
        15_000, server(2000, 50_000, 5000), 15_000, 15_000, 43.4, {}
    ),
    "10 on 1/1/1": Measured(10, server(1, 1, 1), 3, 3, 55.1, {"request_timeout": 7}),
    "10 on 1/1/10": Measured(10, server(1, 1, 10), 10, 3, 55.1, {"request_timeout": 7}),
    "10 on 1/1/10 closed": Measured(10, server(1, 1, 10), 10, 10, 50.1, {}, keep_alive=False),
}


# Sections 2, 3 and 6: what decides who succeeds.
MECHANISMS = {
    "idle 60": Measured(10, server(1, 1, 1, 60), 3, 1, 5, {}),
    "idle 1": Measured(10, server(1, 1, 1, 1), 3, 10, 59.2, {}),
    "closed": Measured(10, server(1, 1, 1), 3, 8, 42, {}, keep_alive=False),
    "worker queue of 10": Measured(100, server(10, queue=10), None, 20, None, {"other": 80}),
    "virtual threads": Measured(1000, server(threads=None), None, 1000, 6.5, {}),
}


@pytest.mark.parametrize(
    "row", [*LADDER.values(), *MECHANISMS.values()], ids=[*LADDER, *MECHANISMS]
)
def test_what_was_measured_is_within_the_tolerances(row: Measured) -> None:
    expected = predict(row.server, spike(row.users, row.keep_alive))
    if row.established is not None:
        assert expected.established_least <= row.established <= expected.established_most
    assert expected.good_least <= row.good <= expected.good_most
    least, most = expected.last_answer_least_seconds, expected.last_answer_most_seconds
    assert least is not None
    assert most is not None
    assert row.last is None or least <= row.last <= most
    strays = {k: n for k, n in row.failures.items() if k not in expected.failure_classes}
    assert sum(strays.values()) <= STRAY_SHARE * row.users


@pytest.mark.parametrize("row", LADDER.values(), ids=LADDER)
def test_a_prediction_of_the_ladder_says_something(row: Measured) -> None:
    """A tolerance that everything meets would predict nothing."""
    expected = predict(row.server, spike(row.users, row.keep_alive))
    assert expected.established_least == expected.established_most
    assert expected.good_most - expected.good_least <= 0.1 * row.users
    least, most = expected.last_answer_least_seconds, expected.last_answer_most_seconds
    assert least is not None
    assert most is not None
    assert most - least <= 0.16 * least + 4


def test_1000_users_come_in_five_waves() -> None:
    found = predict(server(), spike(1000))
    assert [(wave.answers, wave.at_seconds) for wave in found.waves] == [
        (200, 5),
        (200, 10),
        (200, 15),
        (200, 20),
        (200, 25),
    ]
    assert (found.good, found.failed, found.failure_classes) == (1000, 0, [])


def test_12_waves_of_5_s_are_on_the_edge_of_a_minute() -> None:
    found = predict(server(500), spike(6000))
    assert (found.good_least, found.good_most) == (5500, 6000)
    assert found.failure_classes == ["request_timeout"]


def test_a_user_outside_times_out_in_his_dial_or_half_open_in_his_request() -> None:
    found = predict(server(1000), spike(10_000))
    assert found.failure_classes == ["dial_timeout", "request_timeout"]
    # Half-open users may still come in when a place becomes free.
    assert found.good == found.good_least == 8293
    assert 8293 < found.good_most <= 8293 + 2 * 101 + 32


def test_a_peak_that_is_over_at_once_has_no_lower_bound() -> None:
    short = Spike(1000, service_seconds=0.1, timeout_seconds=60, keep_alive=False)
    found = predict(server(), short)
    assert (found.established_least, found.established_most) == (0, 1000)


def test_a_syn_is_sent_again_as_the_kernel_does() -> None:
    now = Spike(1, 5, 60).retries()
    assert now == pytest.approx([1, 2, 3, 4, 5, 7, 11, 19], rel=0.03)
    older = Spike(1, 5, 60, syn_linear_timeouts=0).retries()
    assert older == pytest.approx([1, 3, 7, 15], rel=0.03)
    impatient = Spike(1, 5, timeout_seconds=6).retries()
    assert impatient == pytest.approx([1, 2, 3, 4, 5], rel=0.03)


@given(
    users=st.integers(1, 3000),
    threads=st.none() | st.integers(1, 500),
    connections=st.integers(1, 2000),
    accept=st.integers(1, 500),
    idle=st.sampled_from([0.0, 1.0, 20.0, 60.0]),
    queue=st.none() | st.integers(1, 100),
    keep_alive=st.booleans(),
    half_open=st.booleans(),
)
def test_no_user_is_lost_and_no_limit_exceeded(
    users: int,
    threads: int | None,
    connections: int,
    accept: int,
    idle: float,
    queue: int | None,
    keep_alive: bool,
    half_open: bool,
) -> None:
    at = server(threads, connections, accept, idle, queue)
    found = simulate(at, spike(users, keep_alive), half_open)
    assert found.good + found.rejected + found.unanswered == users
    assert found.unanswered >= 0
    assert found.good == sum(answers for _, answers in found.waves)
    assert found.established_peak <= min(users, at.capacity)
    assert all(answers <= (threads or users) for _, answers in found.waves)
    if queue is None:
        assert found.established_peak == min(users, at.capacity)
        assert found.rejected == 0


def test_service_times_and_the_capacity_of_threads() -> None:
    effective = {"TARGET_HELLO_DELAY_MS": 5000.0, "TOMCAT_MAX_THREADS": 20.0}
    assert service_seconds(load_plan("tomcat-spike"), effective) == 5
    soak = load_plan("soak")
    assert service_seconds(soak, effective) == 0.05
    assert predicted_rate(effective, 0.05) == 400
    assert predicted_rate({"TOMCAT_MAX_THREADS": None}, 0.05) is None
    assert predicted_rate(effective, 0) is None
    # Another path, or a proxy before the target: nothing is known.
    assert service_seconds(load_plan("authz"), effective) is None
    assert service_seconds(load_plan("mesh-phases"), effective) is None


def test_an_accept_queue_that_is_short_for_its_users_may_stay_short_of_full() -> None:
    """1,247 users at 1220 / 2 on 57 threads held 1,204 of 1,223 for 20 s (section 8)."""
    crowd = Spike(1247, service_seconds=20, timeout_seconds=25)
    found = predict(server(57, 1220, 2), crowd)
    assert found.established_peak == found.established_most == 1223
    assert 1100 == found.established_least <= 1204
    assert found.good_least == found.good_most == 57


def test_a_preset_takes_the_lower_rungs_of_the_ladder() -> None:
    whole, quick = load_plan("tomcat-ladder"), load_plan("tomcat-ladder", preset="quick")
    assert len(whole.variants) == 17
    assert max(int(str(variant.set["users"])) for variant in quick.variants) == 3000
    assert [v for v in whole.variants if v in quick.variants] == quick.variants


def test_a_preset_names_variants_that_there_are(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    text = (paths.PLANS / "tomcat-ladder.yaml").read_text()
    plan.write_text(text.replace("      - users-300\n", "      - user-300\n"))
    with pytest.raises(UsageError, match=r"line \d+: .*no variant 'user-300'.*'users-300'"):
        load_plan(str(plan), preset="quick")
