"""A new setting of the target needs what a table in docs/development.md names, and nothing else."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from spikelab import paths
from tests.support.lab import Lab, make_lab

NAME = "TOMCAT_PROCESSOR_CACHE"
LAST = "AUTHZ_BLACKLIST"  # the last setting of today
ROW = re.compile(r"^\| `(\S+)` \| `(.+)` \| .+ \|$", re.MULTILINE)
PLAN = f"""
name: cache
about: A few requests with each value of the new setting
script: steady
request:
  path: /hello?ms=1
phases:
  - {{name: some, kind: rate, value: 5, duration: 2s}}
sweep:
  settings: {{{NAME}: [10, 20]}}
slo: [success >= 50%]
"""


def rows() -> list[tuple[str, str]]:
    """File and line of each row of the table."""
    text = (paths.ROOT / "docs" / "development.md").read_text()
    return ROW.findall(text.split("## A setting of the target\n")[1].split("\n## ")[0])


def add(file: Path, line: str) -> None:
    """Below the last setting and what belongs to it, as deep as that is."""
    lines = file.read_text().splitlines()
    (place,) = (n for n, each in enumerate(lines) if re.match(rf" *{LAST}[:=]", each))
    indent = lines[place].partition(LAST)[0]
    after = place + 1
    while after < len(lines) and lines[after].startswith(indent + " "):
        after += 1
    lines.insert(after, indent + line)
    file.write_text("\n".join(lines) + "\n")


def python(tree: Path, *arguments: str) -> None:
    command = [str(paths.VENV / "bin" / "python"), *arguments]
    ran = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this tree with the setting, and with the programs that are built already."""
    copy = tmp_path_factory.mktemp("new_setting") / "tree"
    own = {".git", ".lab", "results"}  # of the top alone: spikelab/ has a results, too
    shutil.copytree(
        paths.ROOT,
        copy,
        symlinks=True,
        ignore=lambda folder, _: own if Path(folder) == paths.ROOT else {"__pycache__"},
    )
    (copy / ".lab" / "build").mkdir(parents=True)
    for folder in ("bin", "venv"):
        (copy / ".lab" / folder).symlink_to((paths.ROOT / ".lab" / folder).resolve())
    added = rows()
    assert len(added) == 3
    for name, line in added:
        assert line.startswith(NAME)
        add(copy / name, line)
    return copy


def test_compose_and_its_example_have_it(tree: Path) -> None:
    tests = ("test_settings.py", "compose/test_stated_twice.py")
    python(tree, "-m", "pytest", "-q", *(f"tests/unit/{name}" for name in tests))


@pytest.fixture(scope="module")
def lab(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    # The commands of a build name the tree: without a stamp, all would be built again.
    stamp = "[b.stamp.write_text(b.digest()) for b in builds() if b.needs == 'go']"
    python(tree, "-c", f"from spikelab.stack.programs import builds; {stamp}")
    instance = replace(make_lab(tmp_path_factory.mktemp("lab")), root=tree)
    up = instance("up", "--without", "grafana", "--without", "influxdb")
    assert up.returncode == 0, up.stderr
    yield instance
    assert instance("down").returncode == 0


@pytest.mark.slow
def test_the_lab_refuses_a_wrong_value(lab: Lab) -> None:
    result = lab("run", "steady", "--target-set", f"{NAME}=many")
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert f"{NAME}=many: must be a whole number from -1 to 1000000" in result.stderr


@pytest.mark.slow
def test_a_sweep_sets_it_and_the_target_shows_it(lab: Lab) -> None:
    plan = lab.home / "cache.yaml"
    plan.write_text(PLAN)
    swept = lab("sweep", str(plan))
    assert swept.returncode in (0, 3), swept.stdout + swept.stderr
    targets = [record["target"] for record in lab.records()]
    assert [target["settings"][NAME] for target in targets] == [10, 20]
    # As `tomcat_setting` had it.
    assert [target["effective"][NAME] for target in targets] == [10, 20]
