"""Three targets behind the proxy instead of one, and the proxy before a service of the user's."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from spikelab import paths
from tests.compose.conftest import Stack
from tests.support.lab import wait_until

REPLICAS = paths.COMPOSE_FILE.with_name("docker-compose.replicas.yml")
TLS = paths.COMPOSE_FILE.with_name("docker-compose.tls.yml")
PLAN = f"""
name: share
about: One target and three, through TLS
script: steady
request: {{path: "/hello?ms=1"}}
phases:
  - {{name: load, kind: rate, value: 30, duration: 4s, url: "proxy:tunnel_sidecar"}}
slo: [success >= 95%]
variants:
  - {{name: three, compose: [{REPLICAS}]}}
  - {{name: one}}
"""
# The published capacity of one; each replica has a queue of its own.
ONE = 8293


@pytest.fixture(scope="module")
def proxied(stack: Stack) -> Iterator[Stack]:
    result = stack.lab("up", "--with", "proxy", "--without", "grafana")
    assert result.returncode == 0, result.stderr
    yield stack
    # As the other tests have it.
    stack.compose("--profile", "proxy", "rm", "--stop", "--force", "proxy")


def answered(stack: Stack) -> dict[str, float]:
    """Good answers of each target behind the tunnel, by the proxy's own count."""
    good = '{proxy="tunnel_sidecar_exit", code="2xx"}'
    found = stack.prometheus.query(f"sum by (server) (haproxy_server_http_responses_total{good})")
    return {name.removeprefix("server="): count for name, count in found.items() if count}


def test_a_variant_has_three_targets_and_the_next_has_one(proxied: Stack, tmp_path: Path) -> None:
    plan = tmp_path / "share.yaml"
    plan.write_text(PLAN)
    file = tmp_path / "records.json"
    result = proxied.lab("run", str(plan), "--json", str(file))
    assert result.returncode == 0, result.stdout + result.stderr
    three, one = json.loads(file.read_text())["runs"]
    assert three["target"]["compose"][0].startswith(f"{REPLICAS.name}@sha256:")
    assert [each["connections"]["predicted"] for each in (three, one)] == [3 * ONE, ONE]
    assert [each["connections"]["accept_queue_limit"] for each in (three, one)] == [300, 100]
    cpu = [set(each["steps"][0]["component_cpu"]) for each in (three, one)]
    assert {"target", "target-2", "target-3"} <= cpu[0]
    assert not {"target-2", "target-3"} & cpu[1]
    # 120 requests over three, then 120 to the first alone.
    wait_until(lambda: sum(answered(proxied).values()) >= 240, 30, "the proxy is scraped")
    counts = answered(proxied)
    assert counts["target1"] == pytest.approx(160, abs=4)
    assert counts["target2"] == pytest.approx(40, abs=3)
    assert counts["target3"] == pytest.approx(40, abs=3)
    assert not [name for name in proxied.containers() if "-target-2" in name]


def test_replicas_started_by_hand_are_scraped_until_a_run_wants_one_target(
    proxied: Stack, tmp_path: Path
) -> None:
    try:
        proxied.compose("up", "--detach", "--wait", *services(), files=[REPLICAS])
        # A target that left Prometheus while that was down counts as up for another 5 minutes.
        scraped = 'count by (job) (up{job=~"target|sockets", target="spring-tomcat"} == 1)'
        wait_until(
            lambda: proxied.prometheus.query(scraped) == {"job=sockets": 3, "job=target": 3},
            60,
            "three of both",
        )
        predicted = "loadtest:connections:predicted"
        wait_until(
            lambda: list(proxied.prometheus.query(predicted).values()) == [3 * ONE],
            30,
            "their capacity together",
        )
        # A plan that has none measures one target, not these.
        file = tmp_path / "records.json"
        plan = tmp_path / "one.yaml"
        plan.write_text(PLAN.partition("variants:")[0])
        result = proxied.lab("run", str(plan), "--json", str(file))
        assert result.returncode == 0, result.stdout + result.stderr
        run = json.loads(file.read_text())
        assert run["connections"]["predicted"] == ONE
        assert not [name for name in proxied.containers() if name.endswith(("-2-1", "-3-1"))]
    finally:
        proxied.compose("rm", "--stop", "--force", *services(), files=[REPLICAS])


def services() -> list[str]:
    return [
        f"{name}-{n}" for n in (2, 3) for name in ("target-network", "target", "sockets-exporter")
    ]


def test_the_tunnel_stands_before_a_service_of_the_users(proxied: Stack) -> None:
    """The service is Prometheus, in the network in which a user's own would be."""
    own = {"OWN_TARGET_ADDRESS": "host-gateway", "OWN_TARGET_PORT": "9090"}
    result = proxied.compose("config", files=[TLS], exit_code=None)
    assert result.returncode and "OWN_TARGET_ADDRESS" in result.stderr
    said = proxied.compose("--profile", "proxy", "config", files=[TLS], settings=own).stdout
    assert "own-target=host-gateway" in said
    own["OWN_TARGET_ADDRESS"] = address_in_load(proxied, "prometheus")
    try:
        proxied.compose(
            *("up", "--detach", "--wait", "--no-deps", "proxy"), files=[TLS], settings=own
        )
        for port in ("PROXY_SIDECAR_PORT", "PROXY_TUNNEL_PORT", "PROXY_TUNNEL_SIDECAR_PORT"):
            assert httpx.get(f"{proxied.url(port)}/-/ready", timeout=10).status_code == 200
    finally:
        proxied.compose("--profile", "proxy", "rm", "--stop", "--force", "proxy")
        # Of that file alone: a `docker compose down` without it does not know it.
        outside = f"{proxied.project}_outside"
        subprocess.run(["docker", "network", "rm", outside], capture_output=True, check=True)


def address_in_load(stack: Stack, service: str) -> str:
    container = stack.compose("ps", "--quiet", service).stdout.strip()
    template = f'{{{{(index .NetworkSettings.Networks "{stack.project}_load").IPAddress}}}}'
    return subprocess.run(
        ["docker", "inspect", "--format", template, container],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
