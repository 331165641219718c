"""Runs that go wrong or meet each other, and bad input: one line, the right exit code, no loss."""

import json
import re
import signal
import subprocess
from pathlib import Path

import httpx
import jsonschema
import pytest

from spikelab import paths
from spikelab.stores import first, read_samples
from tests.support.lab import Lab, in_state, wait_until
from tests.support.ports import free_ports

SCHEMA = json.loads((paths.ROOT / "docs" / "run.schema.json").read_text())
SHORT = ("--set", "users=5", "--set", "request.path=/hello?ms=100")


def running(lab: Lab, *arguments: str) -> "subprocess.Popen[str]":
    """Starts a run and waits until its load is on the target."""
    before = len(lab.records())
    process = lab.start("run", *arguments)
    wait_until(lambda: len(lab.records()) > before, 60, "the run has begun")
    page = lab.url("SOCKETS_EXPORTER_PORT") + "/metrics"
    wait_until(
        lambda: (first(read_samples(page, "port"), "sockets_established") or 0) > 0,
        60,
        "the load is on the target",
    )
    return process


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "unknown plan 'nope'"),
        (["tomcat-spike", "--set", "user=5"], "(did you mean 'users'?)"),
        (["tomcat-spike", "--target-set", "TOMCAT_MAX_THREDS=5"], "'TOMCAT_MAX_THREADS'?)"),
        (["tomcat-spike", "--target-set", "TOMCAT_MAX_THREADS=0"], "from 1 to 20000"),
        (["tomcat-spike", "--set", "target.url=http://127.0.0.1:1"], "is unreachable"),
        (["tomcat-spike", "--set", "target.url=http://192.0.2.1"], "--i-own-this-target"),
        (["tomcat-spike", "--set", "target.url=nonsense"], "is no URL"),
        (["tomcat-spike", "--set", "users=90000"], "users are more than this machine carries"),
        (["tomcat-spike", "--label", "commit"], "write it as --label key=value"),
        (["tomcat-spike", "--json", "/no/such/folder/x.json"], "there is no folder"),
        (["tomcat-spike", "--json", "/tmp"], "this is a folder"),
        (["tomcat-spike", "--json", ""], "this is a folder"),
        (["tomcat-spike", "--set", "users=12:30:00"], "must be a whole number"),
        (["tomcat-spike", "--set", "target.url=http://[::1"], "is no URL"),
        (["tomcat-spike", "--target-set", "TOMCAT_MAX_THREADS=²"], "must be a whole number"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(lab: Lab, arguments: list[str], message: str) -> None:
    before = len(lab.records())
    result = lab("run", *arguments)
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1), result.stderr
    assert message in result.stderr
    assert len(lab.records()) == before


def test_a_plan_file_with_a_misspelt_key_and_one_that_is_no_yaml(lab: Lab, tmp_path: Path) -> None:
    plan = tmp_path / "mine.yaml"
    plan.write_text((paths.PLANS / "tomcat-spike.yaml").read_text().replace("phases:", "phase:"))
    result = lab("run", str(plan))
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert "unknown key 'phase' (did you mean 'phases'?)" in result.stderr
    plan.write_text("name: [unclosed\n")
    result = lab("run", str(plan))
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert "this is no YAML" in result.stderr


def test_the_record_follows_the_published_schema_and_keeps_labels(lab: Lab) -> None:
    record = lab.run("tomcat-spike", *SHORT, "--label", "commit=abc")
    jsonschema.validate(record, SCHEMA)
    assert record["labels"] == {"commit": "abc"}
    assert record["valid"] is True
    assert record["target"]["effective"]["TOMCAT_MAX_THREADS"] == 200
    stored = lab.home / "results" / record["testid"] / "run.json"
    assert json.loads(stored.read_text()) == record
    assert record["testid"] in lab("runs").stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_closes_the_record_and_leaves_no_process(lab: Lab, number: int) -> None:
    before = set(lab.processes())
    process = running(lab, "tomcat-spike", "--set", "users=500")
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    record = lab.records()[-1]
    assert (record["valid"], record["verdict"]) == (False, "inconclusive")
    assert record["reasons"] == ["interrupted by the user"]
    assert record["ended"] is not None
    assert in_state(lab, record["testid"]) == ["aborted"]
    assert set(lab.processes()) <= before
    jsonschema.validate(record, SCHEMA)


def test_a_lab_that_is_killed_takes_its_driver_along_and_the_record_is_closed_later(
    lab: Lab,
) -> None:
    before = set(lab.processes())
    process = running(lab, "tomcat-spike", "--set", "users=200")
    process.kill()
    process.communicate(timeout=10)
    wait_until(lambda: set(lab.processes()) <= before, 30, "the driver has ended")
    assert lab.records()[-1]["ended"] is None
    assert lab("runs").returncode == 0
    record = lab.records()[-1]
    assert record["ended"] is not None
    assert record["reasons"] == ["the lab was killed during the run"]
    assert in_state(lab, record["testid"]) == ["aborted"]


def test_live_serves_k6_s_own_dashboard_for_the_time_of_the_run(lab: Lab) -> None:
    port = free_ports(1)[0]
    serving = Lab({**lab.env, "K6_WEB_DASHBOARD_PORT": str(port)})
    process = running(serving, "tomcat-spike", "--set", "users=50", "--live")
    page = httpx.get(f"http://127.0.0.1:{port}/ui/", follow_redirects=True)
    assert page.status_code == 200
    assert "k6" in page.text
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert f"k6's own dashboard: http://127.0.0.1:{port}" in said


def test_a_second_run_is_refused_by_name(lab: Lab) -> None:
    process = running(lab, "tomcat-spike", "--set", "users=300")
    going = lab.records()[-1]
    result = lab("run", "tomcat-spike")
    assert result.returncode == 1
    assert f"another run is going: {going['testid']}" in result.stderr
    down = lab("down")
    assert down.returncode == 1
    assert going["testid"] in down.stderr
    process.communicate(timeout=120)
    assert process.returncode == 0


def test_a_driver_that_is_killed_makes_the_run_invalid(lab: Lab) -> None:
    before = set(lab.processes())
    process = running(lab, "tomcat-spike", "--set", "users=300")
    for pid in set(lab.processes()) - before:
        if Path(f"/proc/{pid}/comm").read_text().strip() == "k6":
            subprocess.run(["kill", "-KILL", str(pid)], check=True)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "k6 ended with -9 (killed)" in said
    assert lab.records()[-1]["valid"] is False


def test_a_target_that_is_restarted_under_load_makes_the_run_invalid(lab: Lab) -> None:
    process = running(lab, "tomcat-spike", "--set", "users=300")
    for pid in lab.processes():
        if Path(f"/proc/{pid}/comm").read_text().strip() == "java":
            subprocess.run(["kill", "-KILL", str(pid)], check=True)
    process.communicate(timeout=120)
    assert process.returncode == 1
    record = lab.records()[-1]
    assert "the target died or was restarted during the run" in record["reasons"]
    assert record["steps"][0]["errors"]["reset"] + record["steps"][0]["errors"]["other"] > 0


@pytest.mark.crowded
def test_a_run_after_an_aborted_one_of_3000_users_starts_on_an_idle_target(lab: Lab) -> None:
    # What is left behind is a quarter of a minute of work.
    left = ("--set", "users=3000", "--set", "request.path=/hello?ms=1000")
    process = running(lab, "tomcat-spike", *left)
    wait_until(
        lambda: (lab.prometheus.value("max(tomcat_worker_queue_depth)") or 0) > 1000,
        60,
        "requests wait for a worker",
    )
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=90)
    record = lab.run("tomcat-spike", "--set", "users=200")
    # On an idle target 200 users are served by 200 threads at once.
    assert record["steps"][0]["failures"] == 0
    assert record["steps"][0]["latency_seconds"]["max"] < 8


TWO_PHASES = """\
name: two
about: Two spikes, one after the other
script: spike
request: {path: "/hello?ms=100"}
phases:
  - {name: first, kind: users, value: 7, duration: 1m}
  - {name: second, kind: users, value: 3, start: 1s, duration: 1m}
"""


def test_two_phases_are_both_shown_and_no_objective_is_needed(lab: Lab, tmp_path: Path) -> None:
    plan = tmp_path / "two.yaml"
    plan.write_text(TWO_PHASES)
    result = lab("run", str(plan))
    assert result.returncode == 0, result.stderr
    steps = lab.records()[-1]["steps"]
    assert [(step["name"], step["requests"], step["verdict"]) for step in steps] == [
        ("first", 7, "pass"),
        ("second", 3, "pass"),
    ]
    assert re.search(r"^first +7 +0 +0 ", result.stdout, re.MULTILINE), result.stdout
    assert re.search(r"^second +3 +0 +0 ", result.stdout, re.MULTILINE)


def test_a_latency_objective_alone_decides(lab: Lab, tmp_path: Path) -> None:
    plan = tmp_path / "two.yaml"
    plan.write_text(TWO_PHASES + "slo: [p95 < 50ms]\n")
    assert lab("run", str(plan)).returncode == 99
    plan.write_text(TWO_PHASES + "slo: [p95 < 5s]\n")
    assert lab("run", str(plan)).returncode == 0


def test_the_url_of_a_phase_is_checked_like_the_target_s(lab: Lab, tmp_path: Path) -> None:
    plan = tmp_path / "elsewhere.yaml"
    plan.write_text(TWO_PHASES.replace("value: 7,", "value: 7, url: 'http://192.0.2.1',"))
    result = lab("run", str(plan))
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert "--i-own-this-target" in result.stderr


def test_a_service_of_the_user_s_own_is_judged_without_the_target_s_figures(lab: Lab) -> None:
    url = lab.url("TARGET_PORT").replace("http://", "http://user:secret@")
    record = lab.run("tomcat-spike", *SHORT, "--set", f"target.url={url}/")
    assert record["steps"][0]["failures"] == 0
    assert record["connections"]["predicted"] is None
    assert record["target"]["url"] == lab.url("TARGET_PORT")
    folder = lab.home / "results" / record["testid"]
    assert (folder / "plan.json").stat().st_mode & 0o077 == 0
    assert "secret" not in (folder / "run.json").read_text()
    assert "secret" not in (folder / "k6-summary.json").read_text()


def test_plans_are_listed(lab: Lab) -> None:
    listed = lab("plans").stdout
    assert "tomcat-spike" in listed
    assert "demo" in listed
