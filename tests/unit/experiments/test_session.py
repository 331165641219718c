"""An experiment before its runs: what it says of them, and how long they still take."""

import zipfile
from pathlib import Path

from spikelab.experiments.session import TimeLeft
from spikelab.experiments.sweep import each_variant
from spikelab.plans.load import load_plan
from spikelab.run import RunOptions

PLAN = """
name: mine
about: builds beside each other
script: steady
phases:
  - {name: steady, kind: rate, value: 20, duration: 1s}
variants:
  - {name: own}
  - {name: patched, jar: patched.jar}
  - {name: other, image: "mine:1", compose: [override.yml]}
"""


def test_the_time_left_is_learned_from_the_runs() -> None:
    left = TimeLeft()
    assert left.seconds([10, 20]) == 30
    left.took(10, 14)
    left.took(20, 22)
    assert left.seconds([10, 20]) == 36
    left.took(100, 0)
    assert left.seconds([1]) == 0


def test_a_variant_that_replaces_the_target_says_so_with_its_files(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "patched.jar", "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "Main-Class: mine.Main\n")
    (tmp_path / "override.yml").write_text("services: {target: {}}")
    (tmp_path / "plan.yaml").write_text(PLAN)
    experiment = each_variant(load_plan(str(tmp_path / "plan.yaml")), RunOptions())
    assert experiment.replaced_targets() == [
        f"variant patched replaces the lab's own target: jar {tmp_path}/patched.jar",
        f"variant other replaces the lab's own target: image mine:1, "
        f"compose {tmp_path}/override.yml",
    ]
    # A search runs the plan itself, no variant of it.
    experiment.state.cells = []
    assert experiment.replaced_targets() == []
