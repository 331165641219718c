"""A run's figures are of the lab's own target: all of its replicas, and nothing else."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import yaml

from grafana.lint.reading import all_dashboards
from grafana.src.signals import phases
from spikelab import paths, signals, target
from spikelab.drivers.process import Usage, UsageSample
from spikelab.series import read_series
from spikelab.settings import Endpoints, load_target_declaration
from spikelab.signals import LAB_TARGET
from spikelab.stores import Prometheus, scraped_since
from spikelab.target import (
    ConnectionCapacity,
    TargetView,
    TimedRequests,
    fill_resources,
    timed_between,
)
from tests.support.http_server import Server
from tests.support.past_prometheus import at, needs_prometheus, past_prometheus
from tests.support.records import plain_record, plain_step

SECONDS = 40


REPLICAS = ("a", "b", "c")


# Of a service of the user's, whose name is before the lab's own.
OTHER = 'target="another", job="sockets", instance="x:9100", port="3333"'


def own(instance: str, port: int = 8081) -> str:
    job = "sockets" if port == 9100 else "target"
    return f'target="{LAB_TARGET}", job="{job}", instance="{instance}:{port}"'


def changed_at(second: int) -> Callable[[int], float]:
    return lambda s: 200 if s < second else 500


def recorded() -> dict[str, Callable[[int], float | None]]:
    series: dict[str, Callable[[int], float | None]] = {
        'loadtest:users{testid="' + plain_record().testid + '"}': lambda s: 5,
        f"up{{{OTHER}}}": lambda s: 1,
        f"sockets_listening{{{OTHER}}}": lambda s: 1,
        f"sockets_established{{{OTHER}}}": lambda s: 700,
        f"sockets_accept_queue_depth{{{OTHER}}}": lambda s: 70,
        f"sockets_accept_queue_limit{{{OTHER}}}": lambda s: 511,
        # Scraped another way, with the counter that every such service has.
        'process_cpu_time_ns_total{target="another", job="target"}': lambda s: 4e9 * s,
    }
    for port in (8081, 9100):
        # Every scrape of it runs into its time-out.
        series[f"up{{{own('gone', port)}}}"] = lambda s: None if s % 3 else 0
    for number, instance in enumerate(REPLICAS):
        scraped = own(instance)
        sockets = f'{own(instance, 9100)}, port="8080"'
        series |= {
            f"up{{{own(instance, 9100)}}}": lambda s: 1,
            f"up{{{scraped}}}": lambda s: 1,
            f"sockets_established{{{sockets}}}": lambda s: 10,
            f"sockets_accept_queue_depth{{{sockets}}}": lambda s: 1,
            f"system_cpu_count{{{scraped}}}": lambda s: 1,
            f"cgroup_cpu_quota_cores{{{scraped}}}": lambda s: 0.5,
            f"process_cpu_time_ns_total{{{scraped}}}": lambda s: 0.25e9 * s,
            f"jvm_memory_committed_bytes{{{scraped}}}": lambda s: 1000,
            # The last one is scraped after the first two have changed.
            f'tomcat_setting{{{scraped}, name="TOMCAT_MAX_THREADS"}}': (
                changed_at(21 if number == 2 else 19)
            ),
        }
    return series


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("past")
    with past_prometheus(folder, range(SECONDS), recorded()) as found:
        yield found


def test_the_target_s_label_is_its_name_wherever_it_is_scraped() -> None:
    assert load_target_declaration().name == LAB_TARGET
    for name in ("target", "sockets"):
        file = paths.ROOT / "prometheus" / "targets" / "docker" / f"{name}.yml"
        groups = yaml.safe_load(file.read_text())
        assert [group["labels"]["target"] for group in groups] == [LAB_TARGET]


@needs_prometheus
def test_a_record_leaves_out_what_another_service_has(prometheus: Prometheus) -> None:
    capacity = ConnectionCapacity(predicted=99, accept_queue_limit=9, accept_count=9)
    found = target.connections(prometheus, at(5), at(30), capacity, 0, keep_alive=True)
    assert (found.established_peak, found.accept_queue_peak) == (30, 3)


@needs_prometheus
def test_a_replica_that_is_not_there_is_not_waited_for(prometheus: Prometheus) -> None:
    scraped = 'up{job="sockets"}'
    assert min(prometheus.query(f"timestamp({scraped})", at(31)).values()) < at(31).timestamp()
    assert scraped_since(prometheus, at(31), at(31))
    assert not scraped_since(prometheus, at(31.5), at(31))


@needs_prometheus
def test_a_series_ends_with_the_last_record_of_its_load(prometheus: Prometheus) -> None:
    """Prometheus would answer with that one for five minutes more."""
    last = SECONDS - 1
    found = read_series(plain_record(started=at(5), ended=at(last)), prometheus)
    assert found is not None
    assert found.begun + timedelta(seconds=len(found) * found.step_seconds) == at(last)


@needs_prometheus
def test_a_series_leaves_out_what_another_service_has(prometheus: Prometheus) -> None:
    found = read_series(plain_record(started=at(5), ended=at(30)), prometheus)
    assert found is not None
    assert set(found.of(signals.CONNECTIONS_ESTABLISHED)) == {30}
    assert set(found.of(signals.ACCEPT_QUEUE_DEPTH)) == {3}


@needs_prometheus
def test_resources_are_of_all_replicas_together(prometheus: Prometheus) -> None:
    step = plain_step(started=at(10), ended=at(30))
    fill_resources([step], prometheus, [], cpus=2)
    # Three times a quarter of a core, of three times half a core.
    assert step.resources.cpu_share == pytest.approx(0.5)
    assert step.resources.memory_bytes == 3000
    # No more than there is to share.
    fill_resources([step], prometheus, [], cpus=1)
    assert step.resources.cpu_share == pytest.approx(0.75)


@needs_prometheus
def test_resident_memory_is_of_all_replicas_that_the_lab_sees(prometheus: Prometheus) -> None:
    step = plain_step(started=at(10), ended=at(30))
    usages = [watched(memory) for memory in (100, 20, 3)]
    fill_resources([step], prometheus, usages, cpus=2)
    assert step.resources.memory_bytes == 123
    # One of them was not seen: the sum would lack it.
    usages[1].samples.clear()
    fill_resources([step], prometheus, usages, cpus=2)
    assert step.resources.memory_bytes == 3000


def watched(memory_bytes: int) -> Usage:
    usage = Usage(lambda: None)
    usage.stop()
    usage.samples = [UsageSample(at(20).timestamp(), 0.0, 0.0, memory_bytes)]
    return usage


@needs_prometheus
@pytest.mark.parametrize("board", all_dashboards().values(), ids=all_dashboards())
def test_dashboards_let_one_choose_the_lab_s_target_and_another(
    board: dict[str, Any], prometheus: Prometheus
) -> None:
    (query,) = (v["query"]["query"] for v in board["templating"]["list"] if v["name"] == "target")
    asked = re.fullmatch(r"label_values\((.+), target\)", query)
    assert asked, query
    found = prometheus.query(f"group by (target) (last_over_time({asked[1]}[1m]))", at(SECONDS))
    assert found.keys() == {"target=another", f"target={LAB_TARGET}"}


@needs_prometheus
def test_a_setting_that_all_replicas_change_is_one_mark(prometheus: Prometheus) -> None:
    change = phases.SETTING_CHANGE.query
    written = change.replace("$target", ".*").replace("$__interval", "5s")
    marks = {
        (labels, second)
        for second in range(10, SECONDS, 5)
        for labels in prometheus.query(written, at(second))
    }
    assert marks == {(f"name=TOMCAT_MAX_THREADS,target={LAB_TARGET},value=500", 20)}


DECLARATION = load_target_declaration()


def exported(**changed: int) -> str:
    lines = []
    for name, value in DECLARATION.resolve(changed).items():
        shown = DECLARATION.settings[name].exported(value)
        lines.append(f'tomcat_setting{{name="{name}"}} {"+Inf" if shown is None else shown}')
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("threads", "differs"), [(200, False), (100, True)])
def test_a_replica_with_other_settings_differs(server: Server, threads: int, differs: bool) -> None:
    server.text = exported()
    replica = Server()
    replica.text = exported(TOMCAT_MAX_THREADS=threads)
    none = "http://127.0.0.1:1"
    endpoints = Endpoints(
        *(none, server.url, none, none, None, None), replicas=[(replica.url, none)]
    )
    try:
        found = target._differs(TargetView(endpoints), DECLARATION.resolve())
    finally:
        replica.close()
    assert found == differs


def test_a_target_with_an_unlimited_setting_has_it(server: Server) -> None:
    """Else every run would start it anew."""
    server.text = exported(TOMCAT_MAX_KEEP_ALIVE_REQUESTS=-1)
    none = "http://127.0.0.1:1"
    view = TargetView(Endpoints(none, server.url, none, none, None, None))
    unlimited = DECLARATION.resolve({"TOMCAT_MAX_KEEP_ALIVE_REQUESTS": -1})
    assert not target._differs(view, unlimited)
    assert target._differs(view, DECLARATION.resolve())


def timed(**answers: tuple[int, float]) -> str:
    """A target's page: of each path how many answers of a status took so many seconds in all."""
    lines = []
    for place, (count, seconds) in answers.items():
        status, _, path = place.removeprefix("s").partition("_")
        labels = f'{{status="{status}",uri="/{path}"}}'
        lines.append(f"http_server_requests_seconds_count{labels} {count}")
        lines.append(f"http_server_requests_seconds_sum{labels} {seconds}")
        lines.append(f"http_server_requests_seconds_max{labels} 7")
    return "\n".join(lines) + "\n"


def test_good_answers_are_timed_by_status_and_path(server: Server) -> None:
    server.text = timed(
        s200_hello=(10, 5.0), s302_hello=(4, 1.0), s404_hello=(2, 9), s200_other=(3, 3)
    )
    none = "http://127.0.0.1:1"
    replica = (server.url, none)
    view = TargetView(Endpoints(none, server.url, none, none, None, None, replicas=[replica]))
    found = view.timed_requests("/hello", ["2xx"])
    assert (found.answered, found.good, found.good_seconds) == (32, 20, 10)
    assert found.good_mean_seconds == 0.5
    assert view.timed_requests("/hello", ["200", "302"]).good == 28


def test_what_the_timer_counted_is_read_where_nothing_was_asked() -> None:
    counts = ((0, 0), (1, 0), (2, 10), (3, 30), (9, 30))
    read = [TimedRequests(at(s).timestamp(), n, n, n / 2) for s, n in counts]
    # Quiet until 1.5 s and from 3.5 s on; in a busy time, from the readings around it.
    whole = timed_between(read, (at(0), at(1.5)), (at(3.5), at(20)))
    assert whole is not None
    assert (whole.good, whole.good_mean_seconds) == (30, 0.5)
    part = timed_between(read, (at(1.5), at(1.5)), (at(2.5), at(2.5)))
    assert part is not None
    assert part.good == 15
    # It was not read then.
    assert timed_between(read, (at(-2), at(-1)), (at(3), at(3))) is None
    # The target began anew.
    assert timed_between(read[::-1], (at(3), at(3)), (at(0), at(0))) is None
