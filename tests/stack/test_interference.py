"""A run beside which something else loads its target."""

import os
import subprocess
from pathlib import Path

import httpx
import pytest

from spikelab import paths
from tests.support import faults
from tests.support.http_server import Server
from tests.support.lab import Lab, wait_until

PHASES = [faults.phase("one", 4, 50), faults.phase("during", 8, 50)]


def by_hand(lab: Lab, testid: str, url: str, seconds: int) -> None:
    """A run of k6's own at 20/s, that the lab did not start."""
    command = [str(paths.BIN / "k6"), "run", "--quiet", "--tag", f"testid={testid}"]
    command += ["-o", "experimental-prometheus-rw", str(paths.K6 / "steady.js")]
    given = {"TESTID": testid, "BASE_URL": url, "INFLUXDB_URL": "", "REQUEST_PATH": "/hello?ms=5"}
    given |= {"RATE": "20", "DURATION": f"{seconds}s", "SLO": "success >= 0%"}
    env = {
        **os.environ,
        "K6_PROMETHEUS_RW_SERVER_URL": f"{lab.prometheus.url}/api/v1/write",
        "K6_FEATURES": "native-histograms",
    }
    words = [word for name, value in given.items() for word in ("-e", f"{name}={value}")]
    subprocess.run([*command, *words], env=env, check=True, capture_output=True, timeout=60)


@pytest.fixture
def plan(tmp_path: Path) -> str:
    return faults.plan(tmp_path, phases=PHASES, slo=["success >= 90%"])


def test_a_second_run_on_the_target_makes_the_run_invalid_by_its_name(lab: Lab, plan: str) -> None:
    url = lab.url("TARGET_PORT")
    done = faults.meanwhile(lab, lambda: by_hand(lab, "mine-20", url, 3))
    record = lab.run(plan, exit_code=1)
    done.result()
    (reason,) = record["reasons"]
    assert reason.startswith("mine-20 loaded the target as well: it served 6")
    assert record["verdict"] == "inconclusive"


def test_load_without_a_testid_makes_the_run_invalid(lab: Lab, plan: str) -> None:
    def ask() -> None:
        with httpx.Client() as client:
            for _ in range(40):
                client.get(f"{lab.url('TARGET_PORT')}/hello?ms=1")

    done = faults.meanwhile(lab, ask)
    record = lab.run(plan, exit_code=1)
    done.result()
    assert record["reasons"] == [
        "something that no testid names loaded the target as well: it served 40 requests that this "
        "run did not send"
    ]


def test_a_second_run_elsewhere_is_a_warning(lab: Lab, plan: str) -> None:
    server = Server()
    done = faults.meanwhile(lab, lambda: by_hand(lab, "elsewhere", server.url, 4))
    record = lab.run_unjudged(plan)
    done.result()
    server.close()
    assert record["reasons"] == []
    assert "elsewhere ran at the same time, on another target" in record["warnings"]


def test_a_second_run_on_a_service_of_one_s_own_makes_the_run_invalid(lab: Lab, plan: str) -> None:
    server = Server()
    done = faults.meanwhile(lab, lambda: by_hand(lab, "mine-there", server.url, 4))
    record = lab.run(plan, "--set", f"target.url={server.url}", exit_code=1)
    done.result()
    server.close()
    (reason,) = record["reasons"]
    assert reason.startswith("mine-there loaded the target as well: ")


def test_a_run_that_ended_before_does_not_disturb_the_next(lab: Lab, plan: str) -> None:
    by_hand(lab, "before", lab.url("TARGET_PORT"), 3)
    record = lab.run_unjudged(plan)
    assert (record["reasons"], record["warnings"]) == ([], [])
    wait_until(
        lambda: lab.prometheus.value(
            'sum(last_over_time(loadtest:requests:total{testid="before"}[2m]))'
        ),
        10,
        "the run before was counted",
    )


def test_a_name_is_loaded_at_the_address_that_answers(lab: Lab, plan: str) -> None:
    server = Server()
    port = int(server.url.rpartition(":")[2])
    record = lab.run_unjudged(plan, "--set", f"target.url=http://localhost:{port}")
    server.close()
    assert record["target"]["addresses"] == {f"localhost:{port}": "127.0.0.1"}
    assert {request.headers["Host"] for request in server.requests} == {f"localhost:{port}"}


@pytest.mark.parametrize("driver", ["k6", "locust"])
def test_the_shell_and_its_proxy_do_not_change_the_load(lab: Lab, plan: str, driver: str) -> None:
    proxy = Server()
    shell = dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY"), proxy.url)
    shell |= {"K6_RPS": "10", "LOCUST_TAGS": "nothing", "NO_PROXY": "", "no_proxy": ""}
    told = lab.with_settings(**shell)
    known = len(lab.records())
    result = told("run", plan, "--driver", driver)
    proxy.close()
    assert "K6_RPS, LOCUST_TAGS: ignored" in result.stderr
    record = lab.records()[known]
    assert record["reasons"] == []
    assert sum(step["requests"] for step in record["steps"]) == pytest.approx(600, abs=12)
    assert proxy.requests == []
