"""What the Compose files promise, as far as it shows without an engine: docs/security.md."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from dotenv import dotenv_values

from spikelab import paths

FOLDER = paths.COMPOSE_FILE.parent


COMPOSE = yaml.safe_load(paths.COMPOSE_FILE.read_text())


SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


OVERRIDES = sorted(set(FOLDER.glob("*.yml")) - {paths.COMPOSE_FILE})


EXAMPLE = dotenv_values(paths.ENV_EXAMPLE)


# It gives the secrets to their readers, and ends.
ROOT = "init"


# Run once, or keep a namespace that cannot be had again; a driver that died must not load again.
NEVER_RESTARTED = {"init", "k6", "locust", "locust-worker"}


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_no_rights_that_it_does_not_need(name: str) -> None:
    service = SERVICES[name]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["cap_drop"] == ["ALL"]
    assert service.get("cap_add", []) == (["CHOWN", "DAC_READ_SEARCH"] if name == ROOT else [])
    assert service["read_only"] is True
    assert service["tmpfs"] == ["/tmp:size=64m,mode=1777"]
    for word in ("privileged", "pid", "ipc", "devices", "userns_mode", "volumes_from"):
        assert word not in service, word
    assert service.get("network_mode", "none") in ("none", "service:target-network")


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_limits_that_the_example_explains(name: str) -> None:
    service = SERVICES[name]
    files = service["ulimits"]["nofile"]
    assert service["mem_limit"] == service["memswap_limit"]
    limits = [service[key] for key in ("mem_limit", "cpus", "pids_limit")]
    for limit in (*limits, files["soft"], files["hard"]):
        assert re.fullmatch(r"\$\{[A-Z_]+:-[0-9a-z]+\}", limit), limit


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_s_log_is_rotated(name: str) -> None:
    assert SERVICES[name]["logging"]["options"] == {"max-size": "10m", "max-file": "3"}


def test_every_service_is_restarted_except_drivers_and_one_shot_ones() -> None:
    assert {n for n, s in SERVICES.items() if "restart" not in s} == NEVER_RESTARTED


def test_every_image_s_user_is_stated() -> None:
    # Built ones state theirs in their Dockerfiles, which the engine's tests look at.
    for name, service in SERVICES.items():
        if "image" in service:
            assert re.fullmatch(r"[1-9]\d*:\d+", service["user"]), name


def test_nothing_of_this_machine_is_mounted_that_could_be_written() -> None:
    volumes = {*COMPOSE["volumes"]}
    for name, service in SERVICES.items():
        for mount in service.get("volumes", []):
            if isinstance(mount, dict):
                assert mount["read_only"] is True, (name, mount)
                continue
            source, _, options = mount.partition(":")
            assert source in volumes or options.endswith(":ro"), (name, mount)
            assert "docker.sock" not in mount, (name, mount)


def test_load_has_no_way_out_and_the_others_none_that_is_answered() -> None:
    networks = COMPOSE["networks"]
    assert {n for n, net in networks.items() if net.get("internal")} == {"load", "metrics"}
    for name in {*networks} - {"load", "metrics"}:
        assert networks[name]["driver_opts"] == {
            "com.docker.network.bridge.enable_ip_masquerade": "false"
        }


def test_each_network_has_only_the_services_that_need_it() -> None:
    members: dict[str, set[str]] = {name: set() for name in COMPOSE["networks"]}
    for name, service in SERVICES.items():
        for network in service.get("networks", []):
            members[network].add(name)
    drivers = {"k6", "locust", "locust-worker"}
    assert members == {
        "load": drivers | {"target-network", "proxy", "prometheus"},
        "metrics": drivers | {"prometheus", "influxdb"},
        "ui": {"grafana", "prometheus", "influxdb", "locust"},
        "entry": {"target-network", "proxy", "redis"},
    }
    outside = {n for n, s in SERVICES.items() if "network_mode" in s}
    assert outside == {"init", "target", "sockets-exporter"}


def test_ports_are_published_where_a_network_allows_it() -> None:
    for name, service in SERVICES.items():
        if service.get("ports"):
            assert {"ui", "entry"} & {*service["networks"]}, name


def test_no_variable_holds_a_secret() -> None:
    secret = re.compile(r"PASSWORD|SECRET|TOKEN|KEY")
    for name, service in SERVICES.items():
        for variable, value in service.get("environment", {}).items():
            if secret.search(variable):
                assert re.search(r"/run/secrets/", value), (name, variable, value)


def test_the_default_process_limit_is_2000_threads_and_200_more() -> None:
    assert EXAMPLE["TARGET_PROCESS_LIMIT"] == "2200"


@pytest.mark.parametrize("file", OVERRIDES, ids=lambda file: file.stem)
def test_an_override_says_how_it_is_used_and_opens_nothing(file: Path) -> None:
    text = file.read_text()
    assert text.startswith("# ")
    assert f"-f compose/{file.name}" in text
    assert not re.search(
        r"^\s*(privileged|cap_add|read_only: false|security_opt|pid|user):", text, re.M
    )


def test_digests_are_of_the_pinned_versions() -> None:
    for name, image in dotenv_values(FOLDER / "digests.env").items():
        version, _, digest = str(image).partition("@sha256:")
        assert EXAMPLE[name] == version
        assert re.fullmatch(r"[0-9a-f]{64}", digest), name
