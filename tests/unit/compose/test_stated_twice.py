"""Facts that a format forces the Compose files to state a second time stay equal."""

import re
import shlex
from itertools import pairwise

import pytest
import yaml
from dotenv import dotenv_values

from spikelab import paths
from spikelab.settings import PORTS, load_target_declaration
from spikelab.stack.programs import declared_tools

COMPOSE_TEXT = paths.COMPOSE_FILE.read_text()


COMPOSE = yaml.safe_load(COMPOSE_TEXT)


COMPOSE_FILES = sorted(paths.COMPOSE_FILE.parent.glob("*.yml"))


def test_compose_defaults_are_those_of_the_example() -> None:
    example = dotenv_values(paths.ENV_EXAMPLE)
    used = dict(re.findall(r"\$\{([A-Z0-9_]+):-([^}]*)\}", COMPOSE_TEXT))
    assert used == {name: example[name] for name in used}


def test_every_variable_of_the_example_is_used() -> None:
    example = dotenv_values(paths.ENV_EXAMPLE)
    texts = "".join(file.read_text() for file in COMPOSE_FILES)
    # A matter of ./lab alone.
    elsewhere = {"INFLUXDB_RAW_RETENTION"}
    assert set(example) <= set(re.findall(r"\$\{([A-Z0-9_]+)", texts)) | elsewhere


def test_compose_hands_every_setting_to_the_target() -> None:
    environment = COMPOSE["services"]["target"]["environment"]
    for name in load_target_declaration().settings:
        assert environment[name] == f"${{{name}:-}}"


def test_every_image_is_pinned_to_a_version() -> None:
    services = COMPOSE["services"]
    assert {n for n, s in services.items() if "build" in s} == {
        "init",
        "target",
        "sockets-exporter",
    }
    images = [service["image"] for service in services.values() if "build" not in service]
    assert len(images) >= 8
    for image in images:
        assert re.search(r":v?\d+\.\d+\.\d+\}$", image), image


def test_the_page_on_compatibility_has_every_image() -> None:
    page = (paths.ROOT / "docs" / "compatibility.md").read_text()
    images = {k: v for k, v in dotenv_values(paths.ENV_EXAMPLE).items() if k.endswith("_IMAGE")}
    assert len(images) >= 6
    assert [image for image in images.values() if f"`{image}`" not in page] == []


def test_ports_are_published_on_the_bind_address_alone() -> None:
    # The broker asks for no password: it is published on loopback, whatever the bind address is.
    addresses = {"redis": "127.0.0.1:"}
    published = [(n, p) for n, s in COMPOSE["services"].items() for p in s.get("ports", [])]
    assert len(published) >= 13
    for name, port in published:
        assert port.startswith(addresses.get(name, "${LAB_BIND:-127.0.0.1}:")), (name, port)


def test_every_service_that_stays_has_a_health_check() -> None:
    # init ends; target-network only holds a network namespace.
    staying = {
        name
        for name, service in COMPOSE["services"].items()
        if name not in ("init", "target-network") and not service.get("profiles")
    }
    assert {n for n in staying if "healthcheck" in COMPOSE["services"][n]} == staying


@pytest.mark.parametrize("tool", ["k6", "prometheus"])
def test_image_and_host_tool_are_of_one_version(tool: str) -> None:
    image = COMPOSE["services"][tool]["image"]
    assert declared_tools()[tool].pinned_release in image


def test_both_runtimes_start_prometheus_with_the_same_flags() -> None:
    own_to_a_runtime = ("--config.file", "--storage.tsdb.path", "--web.listen-address")
    supervisor = (paths.ROOT / "host" / "supervisord.conf").read_text()
    line = re.search(r"^command=.*/prometheus (.*)$", supervisor, re.MULTILINE)
    assert line
    host = {flag.split("=")[0] for flag in line[1].split()}
    docker = {flag.split("=")[0] for flag in COMPOSE["services"]["prometheus"]["command"]}
    assert host - set(own_to_a_runtime) == docker - set(own_to_a_runtime)


def test_both_runtimes_start_the_broker_with_the_same_flags() -> None:
    own_to_a_runtime = ("--bind", "--port", "--dir", "--set-proc-title", "--protected-mode")
    host = shlex.split((paths.ROOT / "host" / "start-redis").read_text().partition("exec ")[2])
    docker = COMPOSE["services"]["redis"]["command"]
    shared = [
        {flag: value for flag, value in pairwise(words) if flag.startswith("--")}
        for words in (host, docker)
    ]
    for flags in shared:
        for name in own_to_a_runtime:
            flags.pop(name, None)
    assert shared[0] == shared[1]


def test_the_proxy_listens_inside_compose_where_the_example_says() -> None:
    example = dotenv_values(paths.ENV_EXAMPLE)
    service = COMPOSE["services"]["proxy"]
    inside = {n: v for n, v in service["environment"].items() if n.endswith("_PORT")}
    assert inside == {name: example[name] for name in PORTS["proxy"]}
    assert {port.rpartition(":")[2] for port in service["ports"]} == set(inside.values())


def test_the_proxy_is_given_every_variable_that_it_reads() -> None:
    configuration = (paths.ROOT / "services" / "haproxy" / "haproxy.cfg").read_text()
    used = set(re.findall(r"\$\{(\w+)\}", configuration))
    assert used == set(COMPOSE["services"]["proxy"]["environment"])
    script = (paths.ROOT / "host" / "start-proxy").read_text()
    assert used - set(PORTS["proxy"]) <= set(re.findall(r"(\w+)=", script))
