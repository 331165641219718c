"""Grafana as it is provisioned. Needs one: GRAFANA_HOME, or a grafana on PATH."""

import re
from typing import Any

import httpx
import pytest

from spikelab import paths
from spikelab.runtime.grafana import find_grafana
from tests.stack.conftest import Lab

pytestmark = pytest.mark.skipif(
    find_grafana() is None, reason="no Grafana on this machine: set GRAFANA_HOME to an unpacked one"
)


def get(lab: Lab, path: str, **arguments: Any) -> Any:
    answer = httpx.get(lab.url("GRAFANA_PORT") + path, **arguments)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_both_dashboards_are_in_the_lab_s_folder_and_one_is_home(lab: Lab) -> None:
    found = get(lab, "/api/search", params={"type": "dash-db"})
    assert {d["uid"]: d["folderTitle"] for d in found} == {
        "load-test": "Spikelab",
        "tomcat": "Spikelab",
    }
    assert get(lab, "/api/dashboards/home")["dashboard"]["uid"] == "load-test"


@pytest.mark.parametrize(
    ("uid", "query"),
    [
        ("prometheus", {"expr": "up", "instant": True}),
        ("influxdb", {"query": "SHOW MEASUREMENTS", "rawQuery": True}),
    ],
)
def test_an_anonymous_viewer_gets_data_from_each_source(
    lab: Lab, uid: str, query: dict[str, Any]
) -> None:
    lab.run("tomcat-spike", "--set", "users=5")
    body = {
        "queries": [{"refId": "A", "datasource": {"uid": uid}, **query}],
        "from": "now-5m",
        "to": "now",
    }
    answer = httpx.post(f"{lab.url('GRAFANA_PORT')}/api/ds/query", json=body)
    assert answer.status_code == 200, answer.text
    frames = answer.json()["results"]["A"]["frames"]
    assert sum(len(frame["data"]["values"][0]) for frame in frames) > 0


def test_the_administrator_s_password_is_made_here_and_never_the_default(lab: Lab) -> None:
    url = f"{lab.url('GRAFANA_PORT')}/api/org"
    assert httpx.get(url, auth=("admin", "admin")).status_code == 401
    file = lab.home / "data" / "secrets" / "grafana" / "admin-password"
    assert file.stat().st_mode & 0o077 == 0
    assert httpx.get(url, auth=("admin", file.read_text())).status_code == 200


def test_provisioning_logged_no_error(lab: Lab) -> None:
    log = (lab.home / "log" / "grafana.log").read_text()
    assert re.findall(r"^.*logger=provisioning.*level=error.*$", log, re.MULTILINE) == []
    assert (paths.ROOT / "grafana" / "dashboards" / "load-test.json").exists()
