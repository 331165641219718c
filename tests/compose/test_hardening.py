"""What containers may do, know and reach, asked of the engine and from inside: docs/security.md."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.compose.conftest import Stack

# It gives the secrets to their readers, and ends.
ROOT = "init"
DRIVERS = ("k6", "locust", "locust-worker")
# Services with a shell whose first process is their own.
WITH_SHELL = ("target", "target-network", "prometheus", "influxdb", "proxy", "redis")
GRAFANA = "grafana"
ASK = "id -u; grep -E '^(CapEff|NoNewPrivs)' /proc/1/status; touch /written 2>&1 || true"
TOKEN = "not-a-token-but-a-secret"


@pytest.fixture(scope="module")
def hardened(stack: Stack) -> Iterator[Stack]:
    """The stack with what is started on demand, and drivers that are made and do not run."""
    stack.compose("--profile", "*", "up", "--detach", "--wait", "--no-deps", "proxy", "redis")
    stack.compose("--profile", "*", "create", "--scale", "locust-worker=1", *DRIVERS)
    yield stack
    started = ("proxy", "redis", *DRIVERS)
    stack.compose("--profile", "*", "rm", "--force", "--stop", *started)


@pytest.fixture(scope="module")
def containers(hardened: Stack) -> dict[str, dict[str, Any]]:
    """Service → what the engine says of its container."""
    said = _docker("inspect", *hardened.containers())
    label = "com.docker.compose.service"
    return {each["Config"]["Labels"][label]: each for each in json.loads(said)}


def grafana(stack: Stack) -> list[str]:
    """The service, where its image is to be had."""
    return [GRAFANA] if stack.images.grafana else []


def test_every_service_of_the_resolved_compose_files_is_hardened(stack: Stack) -> None:
    for name, service in _config(stack)["services"].items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["mem_limit"] == service["memswap_limit"], name
        assert service["pids_limit"] > 0, name
        assert service["ulimits"]["nofile"]["hard"] > 0, name
        assert {port["host_ip"] for port in service.get("ports", [])} <= {"127.0.0.1"}, name


def test_the_engine_drops_every_container_s_rights(
    stack: Stack, containers: dict[str, dict[str, Any]]
) -> None:
    assert {*WITH_SHELL, *DRIVERS, ROOT, "sockets-exporter", *grafana(stack)} <= {*containers}
    for name, container in containers.items():
        host = container["HostConfig"]
        rights = [f"CAP_{each.removeprefix('CAP_')}" for each in host["CapAdd"] or []]
        assert rights == (["CAP_CHOWN", "CAP_DAC_READ_SEARCH"] if name == ROOT else []), name
        assert host["CapDrop"] == ["ALL"], name
        assert host["ReadonlyRootfs"], name
        assert not host["Privileged"], name
        assert "no-new-privileges:true" in host["SecurityOpt"], name
        assert not [each for each in host["SecurityOpt"] if "unconfined" in each], name
        assert host["PidMode"] == "", name
        assert host["LogConfig"]["Config"] == {"max-file": "3", "max-size": "10m"}, name
        assert not [m for m in container["Mounts"] if m["Source"].endswith(".sock")], name
        user = container["Config"]["User"]
        assert user.partition(":")[0] not in (() if name == ROOT else ("", "0", "root")), name


def test_the_engine_limits_every_container(containers: dict[str, dict[str, Any]]) -> None:
    for name, container in containers.items():
        host = container["HostConfig"]
        assert 0 < host["Memory"] == host["MemorySwap"], name
        assert host["PidsLimit"] > 0, name
        assert [limit["Name"] for limit in host["Ulimits"]] == ["nofile"], name
        assert "size=" in host["Tmpfs"]["/tmp"], name
        unlimited = name in ("target", "proxy", *DRIVERS)
        assert (host["NanoCpus"] == 0) == unlimited, name
    assert containers["target"]["HostConfig"]["PidsLimit"] == 2200


@pytest.mark.parametrize("service", [*WITH_SHELL, GRAFANA])
def test_a_process_inside_has_no_rights(hardened: Stack, service: str) -> None:
    if service == GRAFANA and not grafana(hardened):
        pytest.skip("there is no image of Grafana")
    user, rights, no_new, write = hardened.exec(service, "sh", "-c", ASK).splitlines()
    assert int(user) > 0
    assert int(rights.split()[1], 16) == 0
    assert no_new.split()[1] == "1"
    assert "ead-only file system" in write


@pytest.mark.parametrize("service", ["k6", "locust"])
def test_a_driver_has_no_rights(hardened: Stack, service: str) -> None:
    said = _run(hardened, service, ASK)
    assert int(said[0]) > 0
    assert int(said[1].split()[1], 16) == 0
    assert said[2].split()[1] == "1"
    assert "ead-only file system" in said[3]


def test_the_exporter_s_image_holds_nothing_to_run(hardened: Stack) -> None:
    result = hardened.compose(
        "exec", "--no-TTY", "sockets-exporter", "sh", "-c", "id", exit_code=None
    )
    assert result.returncode != 0


def test_networks_let_through_what_is_needed_and_no_more(
    hardened: Stack, containers: dict[str, dict[str, Any]]
) -> None:
    def address(service: str, network: str) -> str:
        networks = containers[service]["NetworkSettings"]["Networks"]
        return str(networks[f"{hardened.project}_{network}"]["IPAddress"])

    pages = [f"{address(name, 'ui')}:3000" for name in grafana(hardened)]
    influxdb = f"{address('influxdb', 'metrics')}:8086"
    broker = f"{address('redis', 'entry')}:6379"
    assert _reaches(hardened, "target", "prometheus:9090")
    assert _reaches(hardened, "target", broker)
    for closed in (influxdb, *pages):
        assert not _reaches(hardened, "target", closed)
    assert _driver_reaches(hardened, "http://target:8080/hello?ms=0", "http://influxdb:8086/ping")
    for closed in (*pages, broker):
        assert not _driver_reaches(hardened, f"http://{closed}/")


def test_no_secret_is_in_config_environment_or_log(hardened: Stack) -> None:
    key = hardened.exec("target", "cat", "/run/secrets/authz/private-key.pem").splitlines()[1]
    secrets = {"key": key, "token": TOKEN}
    places = {
        "config": json.dumps(_config(hardened, TOKEN=TOKEN)),
        "engine": _docker("inspect", *hardened.containers()),
        "log": hardened.compose("--profile", "*", "logs").stdout,
        "the target's environment": hardened.exec("target", "cat", "/proc/1/environ"),
    }
    for name in grafana(hardened):
        password = hardened.exec(name, "cat", "/run/secrets/grafana/admin-password")
        secrets["password"] = password.strip()
        places["Grafana's environment"] = hardened.exec(name, "cat", "/proc/1/environ")
    for what, secret in secrets.items():
        assert len(secret) > 16, what
        for place, text in places.items():
            assert secret not in text, f"{what} in {place}"


def test_a_token_reaches_a_driver_in_a_file_alone(hardened: Stack, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    # The driver's user is another one. The engine mounts the file, whatever its folders allow.
    file.chmod(0o644)
    ask = "cat $TOKEN_FILE; echo; cat /proc/self/environ"
    said = _run(hardened, "k6", ask, TOKEN_FILE=str(file), TOKEN=TOKEN)
    assert said[0] == TOKEN
    assert TOKEN not in "".join(said[1:])


def test_results_are_the_user_s_who_ran_the_lab(hardened: Stack, tmp_path: Path) -> None:
    user = os.getuid() or 23456
    if os.getuid() == 0:
        os.chown(tmp_path, user, user)
    # As spikelab/stack/docker.py does.
    hardened.compose(
        *("--profile", "k6", "run", "--rm", "--no-TTY", "--no-deps"),
        *("--user", f"{user}:{user}", "--volume", f"{tmp_path}:/results", "k6"),
        *("run", "--summary-export", "/results/k6-summary.json"),
        *("spike.js", "-e", "VUS=2", "-e", "MS=10"),
    )
    summary = tmp_path / "k6-summary.json"
    assert summary.stat().st_uid == user
    assert json.loads(summary.read_text())["metrics"]["attempts"]["count"] == 2


def _config(stack: Stack, **settings: str) -> dict[str, Any]:
    said = stack.compose("--profile", "*", "config", "--format", "json", settings=settings).stdout
    found: dict[str, Any] = json.loads(said)
    return found


def _docker(*command: str) -> str:
    return subprocess.run(["docker", *command], capture_output=True, text=True, check=True).stdout


def _run(stack: Stack, service: str, script: str, **settings: str) -> list[str]:
    """What a script in a driver's container prints, as lines."""
    return stack.compose(
        *("--profile", "*", "run", "--rm", "--no-TTY", "--no-deps", "--entrypoint", "sh"),
        *(service, "-c", script),
        settings=settings,
    ).stdout.splitlines()


def _reaches(stack: Stack, service: str, address: str) -> bool:
    """Whether a service with bash connects to `host:port`."""
    opened = f"exec 3<>/dev/tcp/{address.replace(':', '/')}"
    return (
        stack.compose(
            *("exec", "--no-TTY", service, "timeout", "2", "bash", "-c", opened), exit_code=None
        ).returncode
        == 0
    )


def _driver_reaches(stack: Stack, *urls: str) -> bool:
    """Whether all of them answer k6's container."""
    ask = "; ".join(f"timeout 3 wget -q -O - '{url}' || echo no-answer" for url in urls)
    return "no-answer" not in _run(stack, "k6", ask)
