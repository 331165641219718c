"""Plans: every mistake is one line that names file, line, key and cure."""

import re
from pathlib import Path

import pytest

from spikelab.errors import UsageError
from spikelab.plans.load import load_plan, plan_files

PLAN = """\
name: mine
about: a plan of the test
script: spike
parameters:
  users: {about: how many, default: 7, minimum: 1, maximum: 100}
request:
  path: /hello
phases:
  - name: spike
    kind: users
    value: ${users}
    duration: 5m
slo: [success >= 99.9%]
"""


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(PLAN)
    return path


RATES = """\
name: rates
about: two rates
script: {k6: steady, locust: hello}
request: {timeout: 1s}
phases:
  - {name: warm, kind: rate, value: 10, duration: 5s, judged: false}
  - {name: low, kind: rate, value: 100, duration: 10s}
  - {name: high, kind: rate, value: 200.5, duration: 10s, url: "proxy:tunnel"}
phase_order: alternating
repeats: 2
"""


@pytest.mark.parametrize("name", plan_files())
def test_every_ready_plan_loads_and_is_called_as_its_file(name: str) -> None:
    assert load_plan(name).name == name


@pytest.fixture
def rates_file(tmp_path: Path) -> Path:
    path = tmp_path / "rates.yaml"
    path.write_text(RATES)
    return path


def test_a_phase_without_a_start_follows_the_one_before(rates_file: Path) -> None:
    assert [phase.start for phase in load_plan(str(rates_file)).phases] == ["0s", "5s", "15s"]


def test_every_second_repeat_runs_the_judged_phases_backwards(rates_file: Path) -> None:
    plan = load_plan(str(rates_file))
    orders = [[(p.name, p.start) for p in plan.phases_of(repeat)] for repeat in (1, 2, 3)]
    assert orders[0] == orders[2] == [("warm", "0s"), ("low", "5s"), ("high", "15s")]
    assert orders[1] == [("warm", "0s"), ("high", "5s"), ("low", "15s")]


def test_users_are_those_of_phases_at_the_same_time(rates_file: Path) -> None:
    # `low` may still have requests on their way when `high` begins: 200 + 401.
    assert load_plan(str(rates_file)).users == 200 + 401


def test_a_rate_may_take_so_many_users_and_no_more(rates_file: Path) -> None:
    rates_file.write_text(RATES.replace("value: 100,", "value: 100, most_users: 7,"))
    assert load_plan(str(rates_file)).phases[1].users == 7


def test_a_plan_names_what_it_needs_of_the_stack(rates_file: Path) -> None:
    plan = load_plan(str(rates_file))
    assert (plan.components, plan.foreign_urls) == (["proxy"], set())
    assert load_plan("tomcat-spike").components == []


def test_the_driver_chooses_its_script(rates_file: Path) -> None:
    assert load_plan(str(rates_file)).script_of("k6") == "steady"
    other = load_plan(str(rates_file), driver="locust")
    assert (other.driver, other.script_of("locust")) == ("locust", "hello")
    with pytest.raises(UsageError, match="driver: input should be 'k6' or 'locust'"):
        load_plan(str(rates_file), driver="wrk")


def test_raw_samples_are_the_default_of_spikes_alone(plan_file: Path, rates_file: Path) -> None:
    assert load_plan(str(plan_file)).effective_sinks == ["prometheus", "influxdb"]
    assert load_plan(str(rates_file)).effective_sinks == ["prometheus"]
    assert load_plan(str(rates_file), sinks=["influxdb"]).effective_sinks == [
        "prometheus",
        "influxdb",
    ]
    plan_file.write_text(PLAN.replace("value: ${users}", "value: 50001"))
    assert load_plan(str(plan_file)).effective_sinks == ["prometheus"]


def test_a_slope_offers_its_mean(tmp_path: Path) -> None:
    path = tmp_path / "slope.yaml"
    path.write_text(RATES.replace("{k6: steady, locust: hello}", "ramp"))
    plan = load_plan(str(path))
    assert [plan.offered_rate(phase) for phase in plan.phases] == [5, 55, 150.25]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kind: rate, value: 100,", "kind: rates, value: 100,", "'users' or 'rate'"),
        ("value: 100,", "value: 0,", "phases.1.value: input should be greater than 0"),
        ("value: 100,", "value: 100, period: 1s,", "belong to the kind users"),
        ("kind: rate, value: 100,", "kind: users, value: 1.5,", "users are a whole number"),
        ("proxy:tunnel", "proxy:tunel", "no topology of the proxy (known: proxy:sidecar"),
        ("name: low", "name: spikelab-low", "are the lab's own"),
        ("200.5, duration: 10s", "200.5, duration: 11s", "only phases of one duration"),
        ("locust: hello", "locust: helo", "no locust/helo.py (did you mean 'hello'?)"),
        ("{k6: steady, locust: hello}", "{locust: hello}", "the plan has no script for k6"),
        ("repeats: 2", "needs: [kafka]", "needs.0: input should be 'redis'"),
    ],
)
def test_a_mistake_in_phases_is_one_line(
    rates_file: Path, old: str, new: str, message: str
) -> None:
    rates_file.write_text(RATES.replace(old, new, 1))
    with pytest.raises(UsageError) as error:
        load_plan(str(rates_file))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_ladder_runs_on_its_default_of_1000_users() -> None:
    plan = load_plan("tomcat-spike")
    assert (plan.users, plan.request.path, plan.phases[0].kind) == (1000, "/hello", "users")


def test_a_parameter_keeps_its_type_where_it_stands_alone(plan_file: Path) -> None:
    assert load_plan(str(plan_file)).phases[0].value == 7
    assert load_plan(str(plan_file), ["users=42"]).users == 42


POISSON = """name: chance
about: By chance
script: {script}
phases:
  - {{name: one, kind: rate, value: 100, duration: 10s, arrival: poisson{keys}}}
"""


@pytest.mark.parametrize(
    ("script", "keys", "message"),
    [
        ("ramp", "", "line 5: phases.0.arrival: the script ramp changes its rate evenly"),
        ("steady", ", jitter: 1s", "requests come by chance without jitter"),
    ],
)
def test_poisson_arrivals_are_for_a_rate_that_stays(
    tmp_path: Path, script: str, keys: str, message: str
) -> None:
    file = tmp_path / "chance.yaml"
    file.write_text(POISSON.format(script=script, keys=keys))
    with pytest.raises(UsageError, match=re.escape(message)):
        load_plan(str(file))


def test_poisson_arrivals_need_users_to_spare(tmp_path: Path) -> None:
    file = tmp_path / "chance.yaml"
    file.write_text(POISSON.format(script="steady", keys=""))
    plan = load_plan(str(file))
    (phase,) = plan.phases
    # 2.2 s of the rate and four deviations of it; how many come, nobody knows.
    assert phase.most_users == 280
    assert plan.scheduled_requests(phase) is None
    assert plan.offered_rate(phase) == 100


def test_expected_statuses_can_be_set(plan_file: Path) -> None:
    assert load_plan(str(plan_file)).request.expect == ["2xx"]
    assert load_plan(str(plan_file), ["request.expect=[2xx, 302]"]).request.expect == ["2xx", 302]


def test_request_and_target_url_can_be_set(plan_file: Path) -> None:
    plan = load_plan(str(plan_file), ["request.keep_alive=false", "target.url=http://127.0.0.1:9"])
    assert (plan.request.keep_alive, plan.target.url) == (False, "http://127.0.0.1:9")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("phases:", "phasess:", "line 8: unknown key 'phasess' (did you mean 'phases'?)"),
        ("    duration: 5m", "    duraton: 5m", "unknown key 'phases.0.duraton' (did you mean"),
        ("    duration: 5m", "    duration: 5", "line 12: phases.0.duration: "),
        ("    duration: 5m", "    duration: 5 parsecs", "write it like 250ms, 5s or 1m30s"),
        ("path: /hello", "path: hello", "line 7: request.path: "),
        (
            "path: /hello",
            "expect: [2xx, 3x]",
            "line 7: request.expect.1: 3x is neither a status nor a class of them",
        ),
        (
            "success >= 99.9%",
            "p95 under a second",
            "write it like 'success >= 99.9%' or 'p95 < 1s'",
        ),
        ("success >= 99.9%", "success >= 130%", "is not a share between 0% and 100%"),
        ("${users}", "${usres}", "'${usres}' names no parameter (did you mean 'users'?)"),
        ("name: mine", "nome: mine", "unknown key 'nome' (did you mean 'name'?)"),
        ("script: spike", "driver: wrk\nscript: spike", "line 3: driver: input should be 'k6'"),
        (PLAN, "- just\n- a list\n", "this is no plan: a plan is a mapping"),
        (PLAN, "name: [unclosed\n", "this is no YAML"),
        ("    duration: 5m", "    duration: 0s", "must be a second or more"),
        ("    duration: 5m", "    duration: 99999h", "is longer than a day"),
        ("    duration: 5m", "    duration: 1 m 3 s", "is not a duration"),
        ("success >= 99.9%", "success < 50%", "is no objective"),
        ("success >= 99.9%", "p95 > 1s", "is no objective"),
        # What k6 would not read either.
        ("success >= 99.9%", "success >= .999", "is no objective"),
        ("success >= 99.9%", "p95 < 1.s", "is no objective"),
        ("success >= 99.9%", "success >= 1.2.3", "is no objective"),
        ("script: spike", "script: spik", "there is no k6/spik.js (did you mean 'spike'?)"),
        ("slo:", "repeats: 100000000\nslo:", "repeats: input should be less than"),
        ("default: 7", "default: 700", "default=700: must be at most 100"),
        ("minimum: 1", "minimum: abc", "line 5: parameters.users.minimum: "),
        ("about: a plan", "about: 2026-13-45 #", "this is no YAML"),
        ("about: a plan of the test", "about: &a [*a]", "endless"),
        ("name: mine", "name: Mine!", "line 1: name: "),
        (PLAN, "parameters: 5\n", "parameters: "),
        (
            "{about: how many, default: 7, minimum: 1, maximum: 100}",
            "5",
            "line 5: parameters.users: ",
        ),
    ],
)
def test_a_mistake_is_one_line_with_its_cure(
    plan_file: Path, old: str, new: str, message: str
) -> None:
    plan_file.write_text(PLAN.replace(old, new, 1))
    with pytest.raises(UsageError) as error:
        load_plan(str(plan_file))
    text = str(error.value)
    assert message in text
    assert "\n" not in text
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("userz=3", "unknown key 'userz' (did you mean 'users'?)"),
        ("users=0", "--set users=0: must be at least 1"),
        ("users=101", "--set users=101: must be at most 100"),
        ("users=many", "--set users=many: must be a whole number"),
        ("users=1.5", "must be a whole number"),
        ("users=true", "must be a whole number"),
        ("users", "write it as --set key=value"),
        ("request.pth=/x", "unknown key 'request.pth' (did you mean 'path'?)"),
        ("request.keep_alive=maybe", "request.keep_alive: "),
        ("users=[1", "must be a whole number"),
        ("users=12:30:00", "must be a whole number"),
        ("users=" + "9" * 5000, "must be a whole number"),
        ("request.headers=[1", "is no value that YAML knows"),
        ("request.headers=2026-13-45", "is no value that YAML knows"),
        ("target.url=http://[::1", "is no URL"),
        ("target.url=http://127.0.0.1:80/path", "is no URL"),
        ("target.url=http://", "is no URL"),
    ],
)
def test_a_wrong_assignment_names_itself(plan_file: Path, assignment: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        load_plan(str(plan_file), [assignment])
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_unknown_plans_and_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown plan 'tomcat-spik' \(did you mean"):
        load_plan("tomcat-spik")
    with pytest.raises(UsageError, match="there is no plan file"):
        load_plan(str(tmp_path / "absent.yaml"))


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "picture.yaml"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff")
    with pytest.raises(UsageError, match="no YAML"):
        load_plan(str(path))
