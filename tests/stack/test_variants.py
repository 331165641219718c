"""Variants that are another build of the target, and driver and target on CPUs of their own."""

import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import psutil
import pytest

from spikelab.stack.builds import file_hash
from spikelab.stack.programs import target_jar, target_stamp
from spikelab.stores import first, read_samples
from tests.support.lab import Lab, wait_until

PLAN = """
name: builds
about: The lab's own target and another build of it
script: steady
request: {path: "/hello?ms=1"}
phases:
  - {name: load, kind: rate, value: 20, duration: 3s}
"""
VARIANTS = """
variants:
  - {name: other, jar: %s}
  - {name: own}
"""


def run_of(lab: Lab, plan: Path) -> list[dict[str, Any]]:
    result = lab("run", str(plan), "--json", "-")
    assert result.returncode == 0, result.stderr
    # It has standard output for itself.
    runs: list[dict[str, Any]] = json.loads(result.stdout)["runs"]
    return runs


def test_driver_and_target_have_the_cpus_that_are_asked_for(lab: Lab, tmp_path: Path) -> None:
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        pytest.skip("one CPU cannot be two")
    driver, target = usable[0], usable[-1]
    bound = Lab({**lab.env, "DRIVER_CPUS": str(driver), "TARGET_CPUS": str(target)})
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    running = bound.start("run", str(plan))
    wait_until(lambda: affinities(lab).get("k6") == [driver], 60, "the driver runs there")
    assert affinities(lab)["java"] == [target]
    samples = read_samples(lab.url("TARGET_MANAGEMENT_PORT") + "/actuator/prometheus")
    assert first(samples, "system_cpu_count") == 1
    # 3: with one CPU on a busy machine the driver may be short of it.
    assert running.wait(60) in {0, 3}
    record = lab.records()[-1]
    assert record["host"]["cores"] == {"driver": [driver], "target": [target]}
    assert record["target"]["build"] == target_stamp()


def affinities(lab: Lab) -> dict[str, list[int]]:
    found = {}
    for pid in lab.processes():
        try:
            process = psutil.Process(pid)
            found[process.name()] = process.cpu_affinity()
        except psutil.Error:
            continue
    return {name: cpus for name, cpus in found.items() if cpus is not None}


def test_a_variant_runs_its_own_jar_and_the_record_says_which(lab: Lab, tmp_path: Path) -> None:
    """After it the target runs on all CPUs again, where a test before this one has bound it."""
    other = tmp_path / "builds" / "other.jar"
    other.parent.mkdir()
    shutil.copy(target_jar(), other)
    (other.parent / "lib").symlink_to(target_jar().parent / "lib")
    with zipfile.ZipFile(other, "a") as archive:
        archive.comment = b"another build"
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN + VARIANTS % "builds/other.jar")
    builds = {run["steps"][0]["variant"]: run["target"]["build"] for run in run_of(lab, plan)}
    assert builds == {"own": target_stamp(), "other": file_hash(other)}
    assert lab.records()[-1]["host"]["cores"] is None
    assert affinities(lab)["java"] == sorted(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("variant", "env", "message"),
    [
        ("{name: b, jar: no.jar}", {}, "variant b: jar: there is no file 'no.jar' beside"),
        ("{name: b, jar: plan.yaml}", {}, "variant b: jar plan.yaml: this is no jar"),
        ("{name: b, image: 'mine:1'}", {}, "image mine:1: only the docker runtime starts"),
        ("{name: b}", {"DRIVER_CPUS": "0-", "TARGET_CPUS": "1"}, "DRIVER_CPUS=0-: write CPU"),
        ("{name: b}", {"DRIVER_CPUS": "0", "TARGET_CPUS": "4096"}, "there is no CPU 4096"),
    ],
)
def test_a_build_that_cannot_be_started_is_one_line_and_exit_2(
    lab: Lab, tmp_path: Path, variant: str, env: dict[str, str], message: str
) -> None:
    before = len(lab.records())
    plan = tmp_path / "plan.yaml"
    plan.write_text(f"{PLAN}variants: [{variant}]\n")
    result = Lab({**lab.env, **env})("run", str(plan))
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1), result.stderr
    assert message in result.stderr
    assert len(lab.records()) == before
