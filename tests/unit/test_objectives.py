"""The lab, k6's scripts and Locust's read the same objectives: tests/data/objectives.json.
Limits on resources are the lab's alone."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from spikelab import objectives, paths
from spikelab.results.run import Latency, Resources
from tests.support.k6_scripts import K6, needs_k6

sys.path.insert(0, str(paths.ROOT / "locust"))
from lib import slo
from lib.plan import PlanError
from lib.tally import Tally

TABLE_FILE = paths.ROOT / "tests" / "data" / "objectives.json"
TABLE: list[dict[str, Any]] = json.loads(TABLE_FILE.read_text())
VALID = [row for row in TABLE if "wrong" not in row]
INVALID = [row["text"] for row in TABLE if "wrong" in row]
EXAMPLES = [(row["text"], example) for row in VALID for example in row.get("examples", [])]


def by_text(row: dict[str, Any]) -> str:
    return str(row["text"])


@pytest.mark.parametrize("row", VALID, ids=by_text)
def test_the_lab_reads_a_valid_objective(row: dict[str, Any]) -> None:
    found = objectives.parse_objective(row["text"])
    assert (found.key, found.compare, found.limit) == (row["key"], row["compare"], row["limit"])


@pytest.mark.parametrize("text", INVALID)
def test_the_lab_refuses_an_invalid_objective(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no objective|is not a share|longer than a day"):
        objectives.parse_objective(text)


@pytest.mark.parametrize(("text", "example"), EXAMPLES)
def test_the_lab_judges_an_objective(text: str, example: dict[str, Any]) -> None:
    success = example["good"] / example["of"] if "of" in example else 1.0
    latency = dict.fromkeys(Latency.model_fields, example.get("seconds"))
    assert objectives.parse_objective(text).holds(success, latency) is example["holds"]


@pytest.mark.parametrize("row", VALID, ids=by_text)
def test_locust_reads_a_valid_objective(row: dict[str, Any]) -> None:
    found = slo.parse_objective(row["text"])
    key = "success" if found.percentile is None else f"p{found.percentile:g}".replace(".", "_")
    assert (key, found.compare, found.limit) == (row["key"], row["compare"], row["limit"])


@pytest.mark.parametrize("text", INVALID)
def test_locust_refuses_an_invalid_objective(text: str) -> None:
    with pytest.raises(PlanError, match=r"^slo "):
        slo.parse_objective(text)


@pytest.mark.parametrize(("text", "example"), EXAMPLES)
def test_locust_judges_an_objective(text: str, example: dict[str, Any]) -> None:
    tally, objective = Tally(), slo.parse_objective(text)
    seconds = example.get("seconds", 0.1)
    for number in range(example.get("of", 1)):
        if seconds is not None and number < example.get("good", 1):
            tally.answer(seconds, 0)
            tally.slow[text] += objective.is_missed_by(seconds)
        else:
            tally.failure(503, RuntimeError())
    assert objective.holds(tally) is example["holds"]


@needs_k6
def test_k6_reads_refuses_and_judges_every_objective() -> None:
    command = [str(K6), "run", "--quiet", "-e", f"VECTORS={TABLE_FILE}"]
    command.append(str(paths.ROOT / "tests" / "unit" / "k6" / "objectives.js"))
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    document = json.loads(ran.stdout)
    for number, (row, found) in enumerate(zip(TABLE, document["found"], strict=True)):
        if "wrong" in row:
            assert str(found.get("error", "")).startswith("slo "), row
            continue
        assert threshold(found) == (row["key"], row["compare"], row["limit"]), row
        for place, example in enumerate(row.get("examples", [])):
            assert document["examples"][f"{number}-{place}"] is example["holds"], (row, example)


def threshold(found: dict[str, Any]) -> tuple[str, str, float]:
    """Key, comparison and limit of what slo.js made of an objective."""
    match = re.fullmatch(r"(rate|p\((.+)\))([<>]=?)([0-9.]+)", found["threshold"])
    assert match, found
    if match[1] == "rate":
        assert (found["metric"], found.get("limit")) == ("success", None)
        return "success", match[3], float(match[4])
    assert found["metric"] == "response_time_with_failures"
    # What answers are counted as slow by is the threshold's own limit.
    assert found["limit"]["ms"] == float(match[4])
    assert found["limit"]["inclusive"] is (match[3] == "<=")
    return f"p{match[2]}".replace(".", "_"), match[3], float(match[4]) / 1000


@pytest.mark.parametrize(
    ("text", "used", "kept"),
    [
        ("cpu < 80%", Resources(cpu_share=0.79), True),
        ("cpu<0.8", Resources(cpu_share=0.8), False),
        ("cpu <= 80%", Resources(cpu_share=0.8), True),
        ("memory < 500MB", Resources(memory_bytes=499_999_999), True),
        ("memory < 0.5 GiB", Resources(memory_bytes=2**29), False),
        ("open_files < 5000", Resources(open_files=5000), False),
        ("worker_threads < 90%", Resources(), None),
    ],
)
def test_a_limit_on_a_resource_is_held_or_not(
    text: str, used: Resources, kept: bool | None
) -> None:
    limit = objectives.parse_limit(text)
    assert limit.holds(getattr(used, limit.key)) is kept


@pytest.mark.parametrize(
    "text",
    ["cpu > 80%", "disk < 5", "cpu < 80", "memory < 500", "memory < 5XB", "open_files < 5%", ""],
)
def test_an_invalid_limit_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(ValueError, match="write it like"):
        objectives.parse_limit(text)
