"""The stack on a container engine: load from inside its network, figures from its stores."""

import re
from typing import Any

import httpx

from tests.compose.conftest import Stack
from tests.support.lab import in_state, requests_counted, wait_until

# The target's own delay, so that a run is short.
_QUICK = ("-e", "MS=100")
_K6 = ("run", "--rm", "--no-TTY", "k6", "run", "--quiet")


def k6(stack: Stack, *arguments: str, exit_code: int = 0, **settings: str) -> str:
    """`docker compose run --rm k6 run …`; what k6 prints."""
    result = stack.compose(*_K6, *arguments, settings=settings, exit_code=exit_code)
    return result.stdout + result.stderr


def settings_shown(stack: Stack) -> dict[str, float]:
    """The target's effective settings by name, as Prometheus scraped them within the last 5 s."""
    found = stack.prometheus.query("max by (name) (last_over_time(tomcat_setting[5s]))")
    return {labels.removeprefix("name="): value for labels, value in found.items()}


def test_every_component_is_scraped(stack: Stack) -> None:
    wanted = {"target:8081", "target:9100", "prometheus:9090", "influxdb:8086"}
    if stack.images.grafana:
        wanted.add("grafana:3000")

    def scraped() -> set[str]:
        found = stack.prometheus.query("sum by (instance) (up == 1)")
        return {labels.removeprefix("instance=") for labels in found}

    wait_until(lambda: wanted <= scraped(), 30, "everything is scraped")


def test_k6_by_compose_run_is_counted_in_both_stores(stack: Stack) -> None:
    outputs = "experimental-prometheus-rw,influxdb=http://influxdb:8086/myk6db"
    said = k6(
        stack,
        "spike.js",
        *("-e", "VUS=200", "-e", "TESTID=compose-k6", *_QUICK),
        K6_OUT=outputs,
    )
    assert re.search(r"attempts\.*: 200 ", said), said
    wait_until(
        lambda: requests_counted(stack.prometheus, "compose-k6") == 200, 30, "200 in Prometheus"
    )
    raw = "SELECT SUM(value) AS n FROM http_reqs WHERE \"name\" = '/hello'"
    assert [row["n"] for row in stack.influxdb.query(raw)] == [200]
    assert in_state(stack.lab, "compose-k6") == ["closed"]


def test_locust_by_compose_run_pushes_what_it_counted(stack: Stack) -> None:
    options = ["--headless", "--users=20", "--spawn-rate=20", "--run-time=6s", "--ms=100"]
    options.append("--only-summary")
    result = stack.compose(
        *("run", "--rm", "--no-TTY", "--env", "TESTID=compose-locust", "locust", *options)
    )
    table = result.stdout + result.stderr
    counted = re.search(r"Aggregated +(\d+) +0\(0\.00%\)", table)
    assert counted, table
    requests = int(counted[1])
    # 20 users and 100 ms: 200 a second at most.
    assert 200 < requests <= 1300
    wait_until(
        lambda: requests_counted(stack.prometheus, "compose-locust") == requests,
        30,
        "as many in Prometheus",
    )
    assert in_state(stack.lab, "compose-locust") == ["closed"]


def test_the_users_of_scaled_locust_workers_add_up(stack: Stack) -> None:
    page = stack.url("LOCUST_PORT")
    services = ("locust", "locust-worker")
    try:
        stack.up("--no-deps", "--scale", "locust-worker=2", *services)
        # The master has a worker of its own beside the two.
        wait_until(lambda: len(locust_stats(page)["workers"]) == 3, 30, "three workers")
        answer = httpx.post(f"{page}/swarm", data={"user_count": 30, "spawn_rate": 30})
        assert answer.json()["success"], answer.text
        wait_until(lambda: locust_stats(page)["user_count"] == 30, 30, "30 users")
        each = [worker["user_count"] for worker in locust_stats(page)["workers"]]
        assert each == [10, 10, 10]
        users = 'sum(loadtest:users{driver="locust"})'
        wait_until(lambda: stack.prometheus.value(users) == 30, 30, "30 users in Prometheus")
    finally:
        stack.compose("--profile", "locust", "rm", "--stop", "--force", *services)


def locust_stats(page: str) -> dict[str, Any]:
    try:
        stats: dict[str, Any] = httpx.get(f"{page}/stats/requests").json()
    except httpx.TransportError:
        return {"workers": [], "user_count": 0}
    return stats


def test_settings_in_the_environment_reach_the_connector(stack: Stack) -> None:
    asked = {"TOMCAT_MAX_THREADS": "7", "TOMCAT_ACCEPT_COUNT": "5000"}
    stack.up("target", settings=asked)
    wait_until(
        lambda: all(settings_shown(stack).get(name) == int(text) for name, text in asked.items()),
        30,
        f"{asked} in tomcat_setting",
    )
    # What is listened with, by the kernel: not cut to its default of 4096.
    limit = 'sockets_accept_queue_limit{port="8080"}'
    wait_until(lambda: stack.prometheus.value(limit) == 5000, 30, "the kernel's limit")
    stack.up("target")
    wait_until(
        lambda: settings_shown(stack).get("TOMCAT_MAX_THREADS") == 200, 30, "the default again"
    )
