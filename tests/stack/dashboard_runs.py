"""Runs of every kind that a dashboard shows, and the view of a dashboard on them."""

import time
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from grafana.lint.reading import Json
from tests.stack.dashboards import Stores, View
from tests.support.lab import Lab

_MARGIN_MS = 5000
# Without a warm-up, so that the dashboard and the record count the same requests.
STEADY = """\
name: rate
about: A modest rate by either driver
script: {k6: steady, locust: hello}
request: {path: "/hello?ms=20", timeout: 3s}
phases:
  - {name: steady, kind: rate, value: 50, duration: 12s}
slo: [success >= 99%]
"""
# Room for 21 connections, ten workers: some users are served, others wait or are turned away.
SMALL = (
    "--target-set",
    "TOMCAT_MAX_CONNECTIONS=10",
    "--target-set",
    "TOMCAT_ACCEPT_COUNT=10",
    "--target-set",
    "TOMCAT_MAX_THREADS=10",
)

COMPARED = ("k6", "locust", "local", "redis")


@dataclass(frozen=True)
class Shown:
    """A lab that has run everything a dashboard shows: records by name, and the whole time."""

    lab: Lab
    whole: View
    records: dict[str, dict[str, Any]]

    def view(self, board: Json) -> View:
        """The whole time; of a dashboard with a time of its own that time, with runs chosen."""
        start, end = (str(board["time"][key]) for key in ("from", "to"))
        if start.startswith("now"):
            return self.whole
        testids = [self.records[name]["testid"] for name in COMPARED]
        return replace(
            self.whole,
            start_ms=_epoch_ms(start),
            end_ms=_epoch_ms(end),
            choices={"runs": testids, "base": testids[0]},
        )


def _epoch_ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def stores(lab: Lab) -> Stores:
    return Stores(lab.url("PROMETHEUS_PORT"), lab.url("INFLUXDB_PORT"))


def now_ms() -> int:
    return int(time.time() * 1000)


def run_everything(lab: Lab) -> Shown:
    """A rate by each driver, a spike that the target does not hold, checks of tokens."""
    start = now_ms()
    plan = lab.home / "steady.yaml"
    plan.write_text(STEADY)
    slow = ("--set", "request.path=/hello?ms=2000", "--set", "request.timeout=3500ms")
    spike = ("tomcat-spike", "--set", "users=60", *slow, *SMALL)
    short = ("duration=5s", "cool_down=0s", "repeats=1", "rate=50")
    checks = ("blacklist", *(f"--set={value}" for value in short))
    records = {
        "k6": lab.run(str(plan), "--sink", "influxdb"),
        "locust": lab.run(str(plan), "--driver", "locust"),
    }
    # A run for each place of the blacklist. The first has the settings of the runs before.
    # Too short for 99.9 %: without a verdict.
    local, redis = lab.run_unjudged(*checks)["runs"]
    records |= {"local": local, "redis": redis, "spike": lab.run(*spike, exit_code=99)}
    return Shown(lab, View(start - _MARGIN_MS, now_ms() + _MARGIN_MS), records)
