"""The community's k6 dashboards find their data in this lab's stores, as they stand.

Their queries are not here, only what they ask for (tests/data/community_dashboards.yml): names of
metrics and labels, measurements and tags. Runs are by hand, as k6's own documentation has it, and
by the lab.
"""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from spikelab import paths
from tests.support.lab import Lab, wait_until

FACTS = yaml.safe_load(
    (Path(__file__).parent.parent / "data" / "community_dashboards.yml").read_text()
)
# One user for more than it can do: it drops iterations. One request in two is answered with 404.
SCRIPT = """
import http from 'k6/http';
import { check } from 'k6';
export const options = { scenarios: { load: {
  executor: 'constant-arrival-rate', rate: 20, duration: '5s', preAllocatedVUs: 1, maxVUs: 1,
} } };
export default function () {
  const answer = http.get(`${__ENV.BASE_URL}/hello?ms=100`);
  check(answer, { 'status is 200': (r) => r.status === 200 });
  http.get(`${__ENV.BASE_URL}/nowhere`);
}
"""
RUNS = {
    "native-histograms": {"K6_FEATURES": "native-histograms"},
    "trend-statistics": {"K6_PROMETHEUS_RW_TREND_STATS": "min,max,p(95),p(99)"},
}


def by_hand(lab: Lab, folder: Path, name: str) -> str:
    """Runs the script by hand into both stores; returns its testid."""
    script, testid = folder / "script.js", f"community-{name}"
    script.write_text(SCRIPT)
    result = subprocess.run(
        [
            *(str(paths.BIN / "k6"), "run", str(script), "--tag", f"testid={testid}"),
            *("--out", "experimental-prometheus-rw"),
            *("--out", f"influxdb={lab.url('INFLUXDB_PORT')}/myk6db"),
            *("-e", f"BASE_URL={lab.url('TARGET_PORT')}"),
        ],
        env={
            **os.environ,
            "K6_NO_USAGE_REPORT": "true",
            "K6_PROMETHEUS_RW_SERVER_URL": f"{lab.url('PROMETHEUS_PORT')}/api/v1/write",
            "K6_PROMETHEUS_RW_PUSH_INTERVAL": "1s",
            **RUNS[name],
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return testid


@pytest.fixture(scope="module")
def testids(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Runs by hand, by their name."""
    folder = tmp_path_factory.mktemp("community")
    return {name: by_hand(lab, folder, name) for name in RUNS}


@pytest.fixture(scope="module")
def lab_run(lab: Lab) -> str:
    """The testid of a run by the lab into both stores."""
    run = ("steady", "--set", "rate=20", "--set", "duration=5s", "--sink", "influxdb")
    return str(lab.run_unjudged(*run)["testid"])


def missing(lab: Lab, facts: dict[str, Any], testid: str, needs: bool) -> list[str]:
    """What the dashboard asks for and the stores do not have of this run."""
    wanted = facts.get("prometheus", {})
    return [
        *(value(lab, fact, testid, needs) for fact in wanted.get("values", [])),
        *(value(lab, fact, testid, needs, histogram=True) for fact in wanted.get("histograms", [])),
        *(measurement(lab, fact, testid, needs) for fact in facts.get("influxdb", [])),
    ]


def value(lab: Lab, fact: dict[str, Any], testid: str, needs: bool, histogram: bool = False) -> str:
    """Empty where the series is there, with its labels and with a number; else what was asked."""
    if "needs" in fact and not needs:
        return ""
    labels = {"testid": testid, **fact.get("match", {}), **dict.fromkeys(fact.get("by", []), None)}
    matchers = [f'{k}!=""' if v is None else f'{k}="{v}"' for k, v in labels.items()]
    series = f"{fact['metric']}{{{', '.join(matchers)}}}"
    asked = f"last_over_time({series}[10m])"
    if histogram:
        asked = f"histogram_quantile(0.99, sum({asked})) >= 0"
    return "" if lab.prometheus.query(asked) else asked


def measurement(lab: Lab, fact: dict[str, Any], testid: str, needs: bool) -> str:
    if "needs" in fact and not needs:
        return ""
    tagged = "".join(f" AND \"{tag}\" != ''" for tag in fact.get("by", []))
    asked = (
        f'SELECT count("value") AS n FROM "{fact["measurement"]}" '
        f"WHERE \"testid\" = '{testid}'{tagged}"
    )
    found = bool(lab.influxdb.query(asked))
    if "never" in fact:
        return f"is there after all: {asked}" if found else ""
    return "" if found else asked


@pytest.mark.parametrize("facts", FACTS, ids=lambda facts: str(facts["id"]))
def test_community_dashboards_find_all_their_data_after_a_run_by_hand(
    lab: Lab, testids: dict[str, str], facts: dict[str, Any]
) -> None:
    testid = testids[facts["run"]]
    wait_until(lambda: testid in known_testids(lab), 30, "the run is in Prometheus")
    assert not list(filter(None, missing(lab, facts, testid, needs=True)))


@pytest.mark.parametrize(
    "facts", [f for f in FACTS if f["run"] == "native-histograms"], ids=lambda f: str(f["id"])
)
def test_community_dashboards_find_their_data_after_a_run_by_the_lab(
    lab: Lab, lab_run: str, facts: dict[str, Any]
) -> None:
    assert not list(filter(None, missing(lab, facts, lab_run, needs=False)))


def known_testids(lab: Lab) -> set[str]:
    """What their variable `testid` offers."""
    found = lab.prometheus.query('group by (testid) (last_over_time(k6_vus{testid!=""}[10m]))')
    return {labels.removeprefix("testid=") for labels in found}
