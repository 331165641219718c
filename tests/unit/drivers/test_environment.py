"""What of the user's environment and configuration reaches a real driver: what is documented."""

import json
import os
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from spikelab import paths
from spikelab.drivers.process import DriverProcess, ask
from spikelab.errors import UsageError
from spikelab.stack import environment, host
from spikelab.stack.base import DriverCommand
from spikelab.stack.docker import DockerRuntime
from spikelab.stack.environment import DOCUMENTED, ignored, of_this_machine
from spikelab.stack.host import HostRuntime
from tests.support.http_server import Server
from tests.support.k6_scripts import needs_k6, plan

RATE, SECONDS, USERS = 50, 2, 20
PROXIES = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy")


@pytest.fixture
def proxy() -> Iterator[Server]:
    one = Server()
    yield one
    one.close()


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(host, "_DRIVER_HOME", tmp_path / "driver")
    monkeypatch.setattr(paths, "STATE", tmp_path)
    return tmp_path


# Go asks no proxy for a loopback address.
NAME = "target.test"


def named(server: Server) -> str:
    return server.url.replace("127.0.0.1", NAME)


def k6_command(server: Server, folder: Path) -> DriverCommand:
    phase = {"name": "steady", "kind": "rate", "value": RATE, "most_users": USERS}
    phases = [{**phase, "duration": f"{SECONDS}s"}]
    plan_file, config = folder / "plan.json", folder / "config.json"
    given = plan(server, phases)
    plan_file.write_text(json.dumps({**given, "target": {"url": named(server)}}))
    address = server.url.removeprefix("http://")
    config.write_text(json.dumps({"hosts": {address.replace("127.0.0.1", NAME): address}}))
    runtime = HostRuntime()
    script = runtime.driver_script("k6", "steady")
    arguments = ["run", "--quiet", "--config", str(config), script]
    return runtime.driver("k6", arguments, {"LAB_PLAN": str(plan_file)}, "t1")


def locust_command(server: Server, folder: Path) -> DriverCommand:
    phases = [{"name": "steady", "kind": "rate", "value": RATE, "duration": f"{SECONDS}s"}]
    plan_file = folder / "plan.json"
    plan_file.write_text(json.dumps({**plan(server, phases), "driver": "locust"}))
    runtime = HostRuntime()
    script = runtime.driver_script("locust", "hello")
    arguments = ["--locustfile", script, "--host", server.url, "--headless", "--only-summary"]
    return runtime.driver("locust", arguments, {"LAB_PLAN": str(plan_file)}, "t1")


def run(command: DriverCommand, folder: Path) -> int:
    return DriverProcess(command, folder / "log").wait(lambda: None, 0.1)


@needs_k6
def test_a_shell_s_variables_do_not_change_the_load_of_k6(
    server: Server, proxy: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("K6_RPS", "10")
    monkeypatch.setenv("K6_NO_CONNECTION_REUSE", "true")
    monkeypatch.setenv("K6_HTTP_DEBUG", "full")
    for name in PROXIES:
        monkeypatch.setenv(name, proxy.url)
    assert run(k6_command(server, tmp_path), tmp_path) == 0, (tmp_path / "log").read_text()
    assert len(server.requests) == pytest.approx(RATE * SECONDS, abs=2)
    assert server.connections < 2 * USERS
    assert proxy.requests == []
    assert "GET /hello" not in (tmp_path / "log").read_text()


@needs_k6
def test_k6_s_configuration_file_of_the_user_is_not_read(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    file = home / ".config" / "k6" / "config.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"rps": 10}))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    assert run(k6_command(server, tmp_path), tmp_path) == 0, (tmp_path / "log").read_text()
    assert len(server.requests) == pytest.approx(RATE * SECONDS, abs=2)


@pytest.mark.timed
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("locust.conf", "users = 1\nrun-time = 1s\ntags = nothing\n"),
        (".locust.conf", "users = 1\nrun-time = 1s\ntags = nothing\n"),
        ("pyproject.toml", '[tool.locust]\nusers = 1\nrun-time = "1s"\ntags = "nothing"\n'),
    ],
)
def test_locust_s_configuration_files_of_the_user_are_not_read(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str, text: str
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / file).write_text(text)
    monkeypatch.setenv("HOME", str(mine))
    monkeypatch.chdir(mine)
    assert run(locust_command(server, tmp_path), tmp_path) == 0, (tmp_path / "log").read_text()
    assert len(server.requests) >= 0.9 * RATE * SECONDS


@pytest.mark.timed
def test_a_shell_s_variables_do_not_change_the_load_of_locust(
    server: Server, proxy: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LOCUST_TAGS", "nothing")
    monkeypatch.setenv("LOCUST_USERS", "1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", proxy.url)
    for name in PROXIES:
        monkeypatch.setenv(name, proxy.url)
    assert run(locust_command(server, tmp_path), tmp_path) == 0, (tmp_path / "log").read_text()
    assert len(server.requests) >= 0.9 * RATE * SECONDS
    assert proxy.requests == []


def test_a_driver_of_this_machine_has_what_is_documented_and_no_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GODEBUG", "http2client=0")
    monkeypatch.setenv("SSL_CERT_FILE", "ca.pem")
    monkeypatch.setenv("MINE", "1")
    monkeypatch.chdir(tmp_path)
    found = of_this_machine(tmp_path)
    assert found["GODEBUG"] == "http2client=0"
    assert found["SSL_CERT_FILE"] == str(tmp_path / "ca.pem")
    assert found["HOME"] == str(tmp_path)
    assert "MINE" not in found
    monkeypatch.setenv("LAB_DRIVER_ENV", "MINE, HTTP_PROXY")
    with pytest.raises(UsageError, match="HTTP_PROXY is not set"):
        of_this_machine(tmp_path)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert {"MINE": "1", "HTTP_PROXY": "http://127.0.0.1:1"}.items() <= (
        of_this_machine(tmp_path).items()
    )


def test_a_container_is_told_what_is_documented_and_no_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("K6_RPS", "HTTP_PROXY", "GODEBUG", "MINE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("LAB_DRIVER_ENV", "MINE")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    argv = [*DockerRuntime().driver("locust", [], {"LAB_PLAN": "p"}, "t").argv]
    told = [after for before, after in pairwise(argv) if before == "--env"]
    assert {"GODEBUG", "MINE", "LAB_PLAN", "LOCUST_PROCESSES", "HOME=/tmp"} < {*told}
    assert not {"K6_RPS", "HTTP_PROXY"} & {*told}
    mounted = next(word.split("=")[1] for word in told if word.startswith("SSL_CERT_FILE="))
    assert f"{tmp_path / 'ca.pem'}:{mounted}:ro" in argv


def test_the_proxies_that_docker_hands_to_containers_do_not_reach_drivers() -> None:
    services = yaml.safe_load(paths.COMPOSE_FILE.read_text())["services"]
    for name in ("k6", "locust", "locust-worker"):
        told = services[name]["environment"]
        assert [told[each] for each in (*PROXIES, "https_proxy")] == [""] * 6


def test_what_is_handed_on_is_what_the_page_says() -> None:
    page = (paths.ROOT / "docs" / "drivers.md").read_text()
    section = page.partition("\n## The environment of a driver\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = {name.strip(" `") for row in rows for name in row.split(",")}
    assert named == {*DOCUMENTED, *environment.SYSTEM}


def test_what_would_have_changed_the_load_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("K6_", "LOCUST_"))]:
        monkeypatch.delenv(name)
    for name in ("K6_RPS", "LOCUST_TAGS", "K6_IMAGE", "LOCUST_PROCESSES", "K6_WEB_DASHBOARD_PORT"):
        monkeypatch.setenv(name, "2")
    assert ignored({"K6_IMAGE": "grafana/k6"}) == ["K6_RPS", "LOCUST_TAGS"]
    monkeypatch.setenv("LAB_DRIVER_ENV", "K6_RPS")
    assert ignored({"K6_IMAGE": "grafana/k6"}) == ["LOCUST_TAGS"]


@needs_k6
def test_a_version_is_asked_in_the_driver_s_environment() -> None:
    assert shutil.which("k6", path=str(paths.BIN))
    assert "k6 v" in ask(HostRuntime().driver("k6", ["version"], {}, "t1"))
