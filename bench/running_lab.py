"""The lab that a bench measures: the one that is up, or one that is up for the bench alone."""

import os
import platform
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from bench.k6_run import K6
from spikelab import paths
from spikelab.settings import Endpoints
from spikelab.stack import current

_NEEDED = {"target", "prometheus", "influxdb"}


@contextmanager
def running_lab() -> Iterator[Endpoints]:
    """Its addresses. A lab that was not up at all is stopped again at the end."""
    running = {component.name for component in current().status() if component.running}
    if not _NEEDED.issubset(running):
        _lab("up", "--runtime", "host", "--without", "grafana")
    try:
        endpoints = current().endpoints()
        print(_machine(endpoints), flush=True)
        yield endpoints
    finally:
        if not running:
            _lab("down")


def _lab(*arguments: str) -> None:
    subprocess.run([str(paths.ROOT / "lab"), *arguments], check=True)


def _machine(endpoints: Endpoints) -> str:
    """One line: what the figures were measured with."""
    return ", ".join(
        [
            f"machine: {os.cpu_count()} CPUs",
            f"load {os.getloadavg()[0]:.1f}",
            f"{platform.system()} {platform.release()}",
            _find(r"k6\S* (v\S+)", _said(str(K6), "version"), "k6"),
            _find(
                r'"version":"([^"]+)"',
                httpx.get(f"{endpoints.prometheus}/api/v1/status/buildinfo").text,
                "Prometheus",
            ),
            f"InfluxDB {httpx.get(f'{endpoints.influxdb}/ping').headers['X-Influxdb-Version']}",
            _find(
                r'jvm_info\{.*version="([^"]+)"',
                httpx.get(f"{endpoints.management}/actuator/prometheus").text,
                "Java",
            ),
        ]
    )


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _find(pattern: str, text: str, name: str) -> str:
    found = re.search(pattern, text)
    return f"{name} {found[1] if found else 'unknown'}"
