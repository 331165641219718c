"""The stack's life: started twice, stopped twice, a port taken, a process that dies."""

import os
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from spikelab import paths
from spikelab.stack.programs import find_grafana
from tests.support.lab import Lab, make_lab, wait_until

STARTED = time.time()
SHORT = ("tomcat-spike", "--set", "users=5", "--set", "request.path=/hello?ms=100")


def pid_of(lab: Lab, program: str) -> int:
    """The process of this lab whose command line names the program."""
    found = pids_of(lab, program)
    assert found, f"{program} is not running"
    return found[0]


def pids_of(lab: Lab, program: str) -> list[int]:
    found = []
    for pid in lab.processes():
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            if any(program in word for word in words[:3]):
                found.append(pid)
    return found


def test_up_again_changes_nothing(lab: Lab) -> None:
    before = sorted(lab.processes())
    result = lab("up")
    assert result.returncode == 0, result.stderr
    assert sorted(lab.processes()) == before


def test_down_and_status_succeed_without_a_stack(tmp_path: Path) -> None:
    nothing = make_lab(tmp_path)
    for _ in range(2):
        result = nothing("down")
        assert (result.returncode, result.stderr.strip()) == (0, "nothing was running")
    assert nothing("status").returncode == 0


def test_a_taken_port_is_named_with_its_holder_and_nothing_is_left(tmp_path: Path) -> None:
    unlucky = make_lab(tmp_path)
    with socket.create_server(("127.0.0.1", int(unlucky.env["PROMETHEUS_PORT"]))):
        result = unlucky("up")
    assert result.returncode == 1
    port = unlucky.env["PROMETHEUS_PORT"]
    assert f"port {port} for prometheus is taken by" in result.stderr
    assert f"(pid {os.getpid()})" in result.stderr
    assert "PROMETHEUS_PORT" in result.stderr.splitlines()[-1]
    assert unlucky.processes() == []


def test_a_wrong_setting_in_the_environment_is_one_line(tmp_path: Path) -> None:
    wrong = make_lab(tmp_path)
    result = Lab({**wrong.env, "TOMCAT_MAX_THREADS": "none"})("up")
    assert result.returncode == 2
    assert "TOMCAT_MAX_THREADS=none: must be a whole number" in result.stderr
    assert "Traceback" not in result.stderr
    assert wrong.processes() == []


def test_an_invalid_port_is_one_line(tmp_path: Path) -> None:
    wrong = make_lab(tmp_path)
    result = Lab({**wrong.env, "PROMETHEUS_PORT": "90900"})("up")
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert "PROMETHEUS_PORT=90900: must be a port number" in result.stderr


@pytest.mark.parametrize("program", ["prometheus", "influxd", "sockets-exporter", "java"])
def test_a_killed_process_comes_back(lab: Lab, program: str) -> None:
    killed = pid_of(lab, program)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{killed}").exists(), 10, f"{program} is gone")
    wait_until(lambda: lab("status").returncode == 0, 20, f"{program} is running again")
    wait_until(lambda: lab("up").returncode == 0, 30, f"{program} is healthy again")
    assert pid_of(lab, program) != killed


def test_nothing_is_written_outside_the_lab_s_folders(lab: Lab) -> None:
    known = {".lab", "results", ".hypothesis", ".pytest_cache", ".ruff_cache", ".mypy_cache"}
    untracked = subprocess.run(
        ["git", "ls-files", "--others"],
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    new = [
        name
        for name in untracked
        if Path(name).parts[0] not in known
        and "__pycache__" not in name
        and (paths.ROOT / name).stat().st_mtime > STARTED
    ]
    assert new == []


def test_a_running_stack_keeps_its_addresses(lab: Lab) -> None:
    elsewhere = Lab({**lab.env, "PROMETHEUS_PORT": "19999"})
    assert f":{lab.env['PROMETHEUS_PORT']}" in elsewhere("status").stdout
    result = elsewhere("up")
    assert result.returncode == 1
    running = lab.env["PROMETHEUS_PORT"]
    assert f"the stack runs with PROMETHEUS_PORT={running}, not 19999" in result.stderr


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("LAB_BIND", "a b", "LAB_BIND=a b: must be an IP address"),
        ("LAB_BIND", "192.0.2.1", "cannot listen there"),
        ("TARGET_PORT", "²", "TARGET_PORT=²: must be a port number"),
        ("TOMCAT_MAX_THREDS", "5", "(did you mean 'TOMCAT_MAX_THREADS'?)"),
        ("TOMCAT_MAX_THREADS", "--5", "must be a whole number"),
    ],
)
def test_a_wrong_variable_is_one_line(
    tmp_path: Path, variable: str, value: str, message: str
) -> None:
    wrong = Lab({**make_lab(tmp_path).env, variable: value})
    result = wrong("up", "--without", "grafana")
    assert result.returncode == 2, result.stderr
    assert message in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr
    assert wrong.processes() == []


def test_two_components_cannot_share_a_port(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    result = Lab({**lab.env, "TARGET_PORT": lab.env["PROMETHEUS_PORT"]})("up")
    assert result.returncode == 2
    assert "is TARGET_PORT already" in result.stderr


def test_a_proxy_in_the_environment_is_not_asked_for_loopback(lab: Lab) -> None:
    proxied = Lab(
        {
            **lab.env,
            "HTTP_PROXY": "http://127.0.0.1:1",
            "http_proxy": "http://127.0.0.1:1",
            "NO_PROXY": "",
            "no_proxy": "",
        }
    )
    assert proxied("up", timeout=30).returncode == 0


def test_the_launcher_works_through_a_link_from_another_folder(lab: Lab, tmp_path: Path) -> None:
    link = tmp_path / "lablink"
    link.symlink_to(paths.ROOT / "lab")
    result = subprocess.run(
        [str(link), "plans"], cwd=tmp_path, env=lab.env, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0
    assert "tomcat-spike" in result.stdout
    assert list(tmp_path.iterdir()) == [link]


def test_garbage_among_the_records_is_passed_over(lab: Lab) -> None:
    results = lab.home / "results"
    (results / "directory" / "run.json").mkdir(parents=True)
    (results / "half").mkdir()
    (results / "half" / "run.json").write_text('{"schema": 1, "testid"')
    (lab.home / "run" / "runtime").write_text("garbage")
    result = lab("runs")
    assert (result.returncode, result.stderr) == (0, "")
    for folder in (results / "directory", results / "half"):
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        folder.rmdir()


def test_doctor_says_how_many_users_the_open_files_allow(lab: Lab) -> None:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    said = lab("doctor").stdout
    assert f"{files:,} open files a process" in said
    assert f"at most about {files - 500:,} users on this machine" in said
    for name in (
        "container engine",
        "ports",
        "port range",
        "cores",
        "memory",
        "clock",
        "Java",
        "Go",
        "disk",
    ):
        assert name in said


def test_up_leaves_a_healthy_target_a_database_and_every_component_scraped(lab: Lab) -> None:
    health = httpx.get(f"{lab.url('TARGET_MANAGEMENT_PORT')}/actuator/health").json()
    assert health["status"] == "UP"
    assert {"name": "myk6db"} in lab.influxdb.query("SHOW DATABASES")
    # The target, its sockets and the two stores; Grafana where there is one.
    all_up = [1.0] * (5 if find_grafana() else 4)
    wait_until(lambda: list(lab.prometheus.query("up").values()) == all_up, 30, "all are scraped")


def test_logs_shows_a_component_s_log_and_refuses_an_unknown_one(lab: Lab) -> None:
    result = lab("logs", "target")
    assert result.returncode == 0
    assert f"listens on 127.0.0.1 port {lab.env['TARGET_PORT']}" in result.stdout
    assert lab("logs", "targt").returncode == 2


# One lab, as each start of its target costs seconds: a run starts it, its supervisord dies, a light
# stack takes its place, and of that too the supervisord dies before `down`.


def kill_supervisord(lab: Lab) -> None:
    os.kill(int((lab.home / "run" / "supervisord.pid").read_text()), signal.SIGKILL)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab that a run has started; nothing of it may be left."""
    instance = make_lab(tmp_path_factory.mktemp("fresh"))
    try:
        assert instance.run(*SHORT)["verdict"] == "pass"
        yield instance
    finally:
        down = instance("down")
    assert down.returncode == 0, down.stderr
    assert instance.processes() == []


@pytest.fixture(scope="module")
def light(fresh: Lab) -> Iterator[Lab]:
    """The same lab after the death of its supervisord, started again without InfluxDB."""
    kill_supervisord(fresh)
    status = fresh("status")
    assert status.returncode == 1
    assert "supervisord died and left programs running" in status.stderr
    up = fresh("up", "--without", "influxdb,grafana")
    assert up.returncode == 0, up.stderr
    yield fresh
    # What it leaves now is `down`'s to stop.
    kill_supervisord(fresh)


def test_a_run_without_a_stack_starts_it(fresh: Lab) -> None:
    assert fresh("status").returncode == 0


def test_a_dead_supervisord_is_said_and_what_it_left_is_stopped(light: Lab) -> None:
    assert light("status").returncode == 0
    assert len(pids_of(light, "java")) == 1
    assert pids_of(light, "influxd") == []


def test_a_light_stack_runs_and_says_what_it_lacks(light: Lab) -> None:
    result = light("run", *SHORT)
    assert result.returncode == 0, result.stderr
    assert "InfluxDB is not running: this run keeps no raw samples" in result.stderr
    record = light.records()[-1]
    assert record["sinks"] == ["prometheus"]
    assert record["steps"][0]["waves"] is None
    assert record["steps"][0]["requests"] == 5
