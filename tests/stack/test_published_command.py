"""The published way to run a spike, by hand and without the lab's help."""

import os
import subprocess

import pytest

from spikelab import paths
from tests.support.lab import Lab, wait_until

K6 = str(paths.BIN / "k6")


@pytest.fixture(scope="module", autouse=True)
def defaults(lab: Lab) -> None:
    """A run of another test leaves the target with that run's settings."""
    lab("down")
    result = lab("up")
    assert result.returncode == 0, result.stderr


def k6(lab: Lab, *arguments: str, env: dict[str, str] | None = None) -> str:
    result = subprocess.run(
        [K6, "run", *arguments],
        env={**os.environ, "K6_NO_USAGE_REPORT": "true", **(env or {})},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def counted(lab: Lab, condition: str) -> int:
    rows = lab.influxdb.query(f'SELECT sum("value") AS n FROM http_reqs WHERE {condition}')
    return int(rows[0]["n"]) if rows else 0


def test_the_published_command_and_script_shape_store_every_request(lab: Lab) -> None:
    script = str(paths.ROOT / "k6" / "examples" / "published-spike-test.js")
    url = f"{lab.url('TARGET_PORT')}/hello"
    before = counted(lab, f"\"name\" = '{url}'")
    output = f"influxdb=http://localhost:{lab.env['INFLUXDB_PORT']}/myk6db"
    k6(lab, "--out", output, script, "-e", f"BASE_URL={lab.url('TARGET_PORT')}")
    assert counted(lab, f"\"name\" = '{url}'") - before == 300


def test_a_spike_by_hand_from_any_folder_is_annotated_and_counted(lab: Lab) -> None:
    output = k6(
        lab,
        "--out",
        "experimental-prometheus-rw",
        str(paths.ROOT / "k6" / "spike.js"),
        "-e",
        "VUS=40",
        "-e",
        "TESTID=by-hand",
        "-e",
        f"BASE_URL={lab.url('TARGET_PORT')}",
        "-e",
        f"INFLUXDB_URL={lab.url('INFLUXDB_PORT')}",
        env={
            "K6_PROMETHEUS_RW_SERVER_URL": f"{lab.url('PROMETHEUS_PORT')}/api/v1/write",
            "K6_PROMETHEUS_RW_PUSH_INTERVAL": "1s",
            "K6_FEATURES": "native-histograms",
        },
    )
    assert "TOTAL RESULTS" in output
    events = lab.influxdb.query("SELECT * FROM events WHERE testid = 'by-hand'")
    assert [(event["phase"], event["state"]) for event in events] == [("spike", "closed")]
    total = 'max_over_time(sum(loadtest:requests:total{testid="by-hand"})[1m:1s])'
    # The last push comes with the end of the run, and the rules are evaluated every second.
    wait_until(lambda: lab.prometheus.value(total) == 40, 30, "all requests are counted")
