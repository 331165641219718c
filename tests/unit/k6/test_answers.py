"""What k6's scripts keep of answers, and the token that authz.js carries."""

import json
import re
from pathlib import Path

import pytest

from spikelab.drivers.k6 import read_summary
from tests.support.http_server import Server
from tests.support.k6_scripts import K6Runs, needs_k6, plan, unused_url

pytestmark = needs_k6


WRONG = 'upstream connect error: "connection timeout" ' + "é" * 400


def bodies(said: str) -> list[dict[str, object]]:
    lines = re.findall(r'msg="spikelab-body ((?:[^"\\]|\\.)*)"', said)
    return [json.loads(json.loads(f'"{line}"')) for line in lines]


@pytest.mark.parametrize(("script", "kind"), [("spike", "users"), ("steady", "rate")])
def test_a_few_users_show_the_wrong_answer(
    k6: K6Runs, server: Server, script: str, kind: str
) -> None:
    server.status, server.text = 503, WRONG
    phases = [{"name": "p1", "kind": kind, "value": 40, "duration": "2s"}]
    run = k6.run(script, plan(server, phases))
    shown = bodies(run.said)
    assert 1 <= len(shown) <= 5
    assert shown[0] == {"phase": "p1", "status": 503, "body": WRONG[:200]}
    assert run.count("failures{scenario:p1,class:http_5xx}") == run.count("attempts")


def test_good_answers_are_not_shown(k6: K6Runs, server: Server) -> None:
    phases = [{"name": "p1", "kind": "users", "value": 5, "duration": "2s"}]
    assert bodies(k6.run("spike", plan(server, phases)).said) == []


STEADY = {"name": "p1", "kind": "rate", "value": 20, "duration": "1s"}


def test_a_redirect_is_a_failure_and_is_not_followed(k6: K6Runs, server: Server) -> None:
    server.status, server.text, server.location = 302, "", f"{server.url}/elsewhere"
    run = k6.run("steady", plan(server, [STEADY]))
    (found,) = read_summary(run.summary_file, {"p1": 0})
    assert {each.path for each in server.requests} == {"/hello?ms=1"}
    assert (found.failures, found.errors.other) == (found.requests, found.requests)
    assert found.completed == found.requests
    assert bodies(run.said)[0]["body"] == f"Location: {server.url}/elsewhere"
    assert run.summary["metrics"]["http_req_failed"]["passes"] == found.requests


@pytest.mark.parametrize(("status", "expect"), [(302, ["2xx", 302]), (404, ["4xx"]), (204, [204])])
def test_a_plan_says_which_answers_are_good(
    k6: K6Runs, server: Server, status: int, expect: list[object]
) -> None:
    server.status, server.text, server.location = status, "", f"{server.url}/elsewhere"
    run = k6.run("steady", plan(server, [STEADY], expect=expect))
    (found,) = read_summary(run.summary_file, {"p1": 0})
    assert (found.failures, found.completed) == (0, found.requests)
    assert {each.path for each in server.requests} == {"/hello?ms=1"}
    assert run.summary["metrics"]["http_req_failed"]["passes"] == 0
    assert bodies(run.said) == []


def test_an_answer_that_is_not_expected_is_a_failure(k6: K6Runs, server: Server) -> None:
    run = k6.run("steady", plan(server, [STEADY], expect=[204]))
    (found,) = read_summary(run.summary_file, {"p1": 0})
    assert (found.failures, found.completed) == (found.requests, found.requests)
    assert bodies(run.said)[0] == {"phase": "p1", "status": 200, "body": "hello"}


def test_what_is_expected_are_statuses(k6: K6Runs, server: Server) -> None:
    run = k6.run("steady", {**authorized(server), "EXPECT": "2xx, 99"})
    assert run.code == 108
    assert "give statuses of good answers, such as 2xx or 302 (EXPECT=…)" in run.said


def authorized(server: Server) -> dict[str, object]:
    return {"BASE_URL": server.url, "INFLUXDB_URL": "", "RATE": 10, "DURATION": "1s"}


def test_a_token_is_made_once_and_kept_out_of_the_rest_of_the_summary(
    k6: K6Runs, server: Server
) -> None:
    server.text = '{"access_token": "secret-made", "token_type": "Bearer"}'
    run = k6.run("authz", authorized(server))
    assert run.code == 0, run.said
    first, *others = server.requests
    assert (first.method, first.path.partition("?")[0]) == ("POST", "/api/v1/auth/token")
    assert {each.path for each in others} == {"/api/v1/authz/ping"}
    assert {each.headers["Authorization"] for each in others} == {"Bearer secret-made"}
    summary = run.summary
    summary["setup_data"].pop("requests")
    assert "secret-made" not in json.dumps(summary) + run.said


def test_what_the_lab_reads_has_no_token(k6: K6Runs, server: Server) -> None:
    server.text = '{"access_token": "secret-made", "token_type": "Bearer"}'
    own = {"headers": {"X-Key": "secret-key"}}
    run = k6.run("authz", plan(server, [STEADY], **own))
    assert "Bearer secret-made" in {each.headers["Authorization"] for each in server.requests}
    assert "secret" not in run.summary_file.read_text() + run.said


def test_a_token_of_the_environment_is_taken(k6: K6Runs, server: Server) -> None:
    run = k6.run("authz", {**authorized(server), "TOKEN": "secret-given"})
    assert run.code == 0, run.said
    assert {each.headers["Authorization"] for each in server.requests} == {"Bearer secret-given"}
    assert "secret-given" not in run.said


def test_a_token_s_file_that_cannot_be_read_stops_what_needs_it(
    k6: K6Runs, server: Server, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    given = {**authorized(server), "TOKEN_FILE": file}
    run = k6.run("authz", given)
    assert run.code == 108
    (line,) = [line for line in run.said.splitlines() if "no token" in line]
    assert f"no token: TOKEN_FILE={file}: " in line
    assert "no such file" in line
    assert not server.requests
    assert k6.run("steady", given).code == 0
    file.write_text("secret-given\n")
    assert k6.run("authz", given).code == 0
    assert server.requests[-1].headers["Authorization"] == "Bearer secret-given"


def test_a_token_that_cannot_be_had_stops_the_run(k6: K6Runs, server: Server) -> None:
    server.status = 404
    run = k6.run("authz", authorized(server))
    assert run.code == 108
    assert f"no token from {server.url}/api/v1/auth/token: status 404; give one" in run.said
    assert len(server.requests) == 1
    away = k6.run("authz", {**authorized(server), "BASE_URL": unused_url()})
    assert away.code == 108
    assert "no token from" in away.said
