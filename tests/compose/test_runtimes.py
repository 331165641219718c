"""One plan on both runtimes: the same record, the same exit codes, the same words."""

import socket
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.support.lab import Lab, make_lab

PLAN = """
name: alike
about: The same on both runtimes
script: {k6: steady, locust: hello}
request: {path: "/hello?ms=1"}
phases:
  - {name: warm-up, kind: rate, value: 20, duration: 1s, judged: false}
  - {name: load, kind: rate, value: 30, duration: 4s}
slo: [success >= 95%]
"""
# What one runtime alone can say, as path: type on the host, type in containers. The host knows its
# target by the jar's hash, containers by the image's digest.
OWN = {
    "target.build": ({"str"}, {"NoneType"}),
    "target.image": ({"NoneType"}, {"str"}),
}
# Of what was started: Grafana is not on every machine.
_STARTED = "steps[].component_cpu."

T = TypeVar("T")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = make_lab(tmp_path_factory.mktemp("host"))
    try:
        result = lab("up", "--without", "grafana")
        assert result.returncode == 0, result.stderr
        yield lab
    finally:
        lab("down")


@pytest.fixture
def both(host: Lab, docker: Lab) -> tuple[Lab, Lab]:
    return host, docker


@pytest.mark.parametrize("driver", ["k6", "locust"])
def test_records_have_the_same_shape(both: tuple[Lab, Lab], tmp_path: Path, driver: str) -> None:
    plan = tmp_path / "alike.yaml"
    plan.write_text(PLAN)
    records = at_once(lambda lab: record_of(lab, plan, driver), both)
    assert [record["target"]["runtime"] for record in records] == ["host", "docker"]
    assert [record["valid"] for record in records] == [True, True]
    host, docker = (shape(record) for record in records)
    paths = {path for path in {*host, *docker} if not path.startswith(_STARTED)}
    different = {
        path: (host.get(path), docker.get(path))
        for path in paths
        if host.get(path) != docker.get(path)
    }
    assert different == OWN
    cpu = [{path for path in found if path.startswith(_STARTED)} for found in (host, docker)]
    assert cpu[0] <= cpu[1], "containers' processes are as well known as the host's"


def at_once(work: Callable[[Lab], T], labs: Iterable[Lab]) -> list[T]:
    """The same of each: mostly they wait."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(work, labs))


def record_of(lab: Lab, plan: Path, driver: str) -> dict[str, Any]:
    """A busy machine makes it inconclusive, or the driver late: the record has the same shape."""
    result = lab("run", str(plan), "--driver", driver)
    record = lab.records()[-1]
    codes = {"pass": 0, "inconclusive": 3, "fail": 99}
    assert result.returncode == codes[record["verdict"]], result.stdout + result.stderr
    return record


def shape(value: Any, path: str = "") -> dict[str, set[str]]:
    """Every key's path, with the types of its values; of a list's elements together."""
    if isinstance(value, dict):
        pairs = [(f"{path}.{key}".lstrip("."), each) for key, each in value.items()]
    elif isinstance(value, list):
        pairs = [(f"{path}[]", each) for each in value]
    else:
        return {path: {type(value).__name__}}
    found: dict[str, set[str]] = {path: {type(value).__name__}} if path else {}
    for where, each in pairs:
        for key, types in shape(each, where).items():
            found.setdefault(key, set()).update(types)
    return found


MISTAKES = [
    (("run", "no-such-plan"), 2),
    (("run", "steady", "--set", "rate=0"), 2),
    (("run", "steady", "--target-set", "TOMCAT_MAX_THREADS=many"), 2),
    (("run", "steady", "--driver", "ab"), 2),
    (("up", "--without", "target"), 2),
    (("up", "--with", "prxy"), 2),
    (("logs", "nginx"), 2),
    (("logs", "redis"), 1),
    (("compare", "steady"), 2),
]


@pytest.mark.parametrize(("command", "code"), MISTAKES, ids=lambda each: str(each)[:40])
def test_mistakes_have_one_line_and_one_exit_code(
    both: tuple[Lab, Lab], command: tuple[str, ...], code: int
) -> None:
    results = at_once(lambda lab: lab(*command), both)
    assert [result.returncode for result in results] == [code, code], results
    # Where each lab has its results differs, and nothing else.
    said = [
        [line.replace(str(lab.home), "LAB_HOME") for line in result.stderr.splitlines()[-1:]]
        for lab, result in zip(both, results, strict=True)
    ]
    assert said[0] and said[0] == said[1]
    assert "Traceback" not in results[0].stderr + results[1].stderr


def test_a_taken_port_is_named_with_its_cure(both: tuple[Lab, Lab], tmp_path: Path) -> None:
    """Before anything is started: both are others than the labs that run."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = str(holder.getsockname()[1])
        for number, lab in enumerate(both):
            other = make_lab(tmp_path / str(number))
            project = {"COMPOSE_PROJECT_NAME": f"spikelab-taken-{port}"}
            env = {**other.env, **project, "LAB_RUNTIME": lab.env["LAB_RUNTIME"]}
            result = Lab({**env, "PROMETHEUS_PORT": port})("up", "--without", "grafana")
            assert result.returncode == 1, result.stderr
            line = result.stderr.splitlines()[-1]
            assert f"port {port} for prometheus is taken" in line
            assert line.endswith("or set PROMETHEUS_PORT in compose/.env")
